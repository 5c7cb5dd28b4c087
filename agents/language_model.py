"""A language model as an agent, over an HTTP interface like OpenAI's, which most servers have.

    export OPENAI_BASE_URL=http://localhost:11434/v1
    tokaido evaluate python:agents.language_model:LanguageModel,model=llama3.2 random --games 2

The program sends `OPENAI_API_KEY` if it is set. A game has about 75 decisions of the model, and
each is a call. `tokaido text` measures a model without a program; copy this for another interface.
"""

import os

from tokaido_env.chat import ChatEndpoint
from tokaido_env.text import TextAgent, TextFormat, TextPlayer


class LanguageModel(TextAgent):
    """Plays the answers of a model; an answer without a legal action loses the game.

    Args:
        model: the name of the model on the server.
        legal: "listed" for prompts with the legal actions, "unlisted" for prompts without.
    """

    def __init__(self, model: str, legal: str = "unlisted") -> None:
        key = os.environ.get("OPENAI_API_KEY")
        endpoint = ChatEndpoint(os.environ["OPENAI_BASE_URL"], model, key=key)
        super().__init__(TextPlayer(endpoint.respond, TextFormat(legal=legal), name=model))
