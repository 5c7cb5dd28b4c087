"""A language model as an agent, through an HTTP interface as OpenAI's: most servers have one.

    export OPENAI_BASE_URL=http://localhost:11434/v1
    tokaido evaluate python:agents.language_model:LanguageModel,model=llama3.2 random --games 2

`OPENAI_API_KEY` is sent where it is set. A game has about 150 decisions, and each is a call.
"""

import json
import os
import urllib.request

from tokaido_env.text import TextAgent, TextFormat, TextPlayer

SECONDS = 120.0  # to wait for an answer


class LanguageModel(TextAgent):
    """Plays what a model answers; loses a game in which it does not answer with a legal action.

    Args:
        model: its name on the server.
        legal: "listed": prompts list the legal actions; "unlisted": the model knows the rules.
    """

    def __init__(self, model: str, legal: str = "listed") -> None:
        self.model = model
        self.url = f"{os.environ['OPENAI_BASE_URL'].rstrip('/')}/chat/completions"
        super().__init__(TextPlayer(self.respond, TextFormat(legal=legal), name=model))

    def respond(self, prompt: str) -> str:
        """Return the answer of the model to a prompt."""
        asked = {"model": self.model, "messages": [{"role": "user", "content": prompt}]}
        headers = {"Content-Type": "application/json"}
        if key := os.environ.get("OPENAI_API_KEY"):
            headers["Authorization"] = f"Bearer {key}"
        request = urllib.request.Request(self.url, json.dumps(asked).encode(), headers)
        with urllib.request.urlopen(request, timeout=SECONDS) as response:
            return str(json.load(response)["choices"][0]["message"]["content"])
