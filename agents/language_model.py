"""A language model as an agent, over an HTTP interface like OpenAI's, which most servers have.

    export OPENAI_BASE_URL=http://localhost:11434/v1
    tokaido evaluate python:agents.language_model:LanguageModel,model=llama3.2 random --games 2

The program sends `OPENAI_API_KEY` if it is set. A game has about 150 decisions, and each is a call.
"""

import json
import os
import urllib.request

from tokaido_env.text import TextAgent, TextFormat, TextPlayer

TIMEOUT = 120.0  # seconds


class LanguageModel(TextAgent):
    """Plays the answers of a model; an answer without a legal action loses the game.

    Args:
        model: the name of the model on the server.
        legal: "listed" for prompts with the legal actions, "unlisted" for prompts without.
    """

    def __init__(self, model: str, legal: str = "listed") -> None:
        self.model = model
        self.url = f"{os.environ['OPENAI_BASE_URL'].rstrip('/')}/chat/completions"
        super().__init__(TextPlayer(self.respond, TextFormat(legal=legal), name=model))

    def respond(self, prompt: str) -> str:
        """Return the answer of the model to a prompt."""
        body = {"model": self.model, "messages": [{"role": "user", "content": prompt}]}
        headers = {"Content-Type": "application/json"}
        if key := os.environ.get("OPENAI_API_KEY"):
            headers["Authorization"] = f"Bearer {key}"
        request = urllib.request.Request(self.url, json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request, timeout=TIMEOUT) as response:
            return str(json.load(response)["choices"][0]["message"]["content"])
