"""A language model as an agent, by the package openai, for any server with OpenAI's interface.

    export OPENAI_BASE_URL=http://localhost:11434/v1 OPENAI_API_KEY=none
    tokaido evaluate python:agents.language_model:LanguageModel,model=llama3.2 random --games 2

Without `OPENAI_BASE_URL` it asks OpenAI's server. A game has about 75 decisions of the model, and
each is a call. `tokaido text-play` measures a model without a program; copy this for another
interface.
"""

from openai import OpenAI

from tokaido_env.text import TextAgent, TextFormat, TextPlayer


class LanguageModel(TextAgent):
    """Plays the answers of a model; an answer without a legal action loses the game.

    Args:
        model: the name of the model on the server.
        legal: "listed" for prompts with the legal actions, "unlisted" for prompts without.
    """

    def __init__(self, model: str, legal: str = "unlisted") -> None:
        self.client, self.model = OpenAI(), model
        super().__init__(TextPlayer(self.respond, TextFormat(legal=legal), name=model))

    def respond(self, prompt: str) -> str:
        """Return the model's answer to a prompt."""
        completion = self.client.chat.completions.create(
            model=self.model, messages=[{"role": "user", "content": prompt}]
        )
        choice = completion.choices[0]
        is_cut = choice.finish_reason == "length"  # perhaps within its reasoning
        return "" if is_cut else choice.message.content or ""
