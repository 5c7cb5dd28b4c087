"""A language model as an agent, by the package openai, for any server with OpenAI's interface.

    pip install openai
    export OPENAI_BASE_URL=http://localhost:11434/v1 OPENAI_API_KEY=none
    MODEL=python:agents.language_model:LanguageModel,model=llama3.2,answers=answers
    tokaido regret $MODEL --positions 100
    python agents/language_model.py answers

Without `OPENAI_BASE_URL` it asks OpenAI's server, with the key of `OPENAI_API_KEY`. A game has
about 75 decisions of the model. With a folder of answers, a command that stopped asks for none of
them again. The last line counts the answers of a folder.
"""

import hashlib
import json
import sys
from pathlib import Path

import numpy as np
from openai import OpenAI

from tokaido_env import Game
from tokaido_env.text import TextAgent, TextError, TextFormat

TRIES = 6  # of a request, while the server is busy or out of reach
NAME = "answers.jsonl"
REFUSED = "refused "  # begins the key of a position without a legal answer


class LanguageModel(TextAgent):
    """Plays the answers of a model; without a legal one it plays at random, and prints so.

    The same prompt gets the same answer. An error of the server stops the match.

    Args:
        model: the name of the model on the server.
        legal: "listed" for prompts with the legal actions, "unlisted" for prompts without.
        answers: folder of a file of answers, JSON Lines, to append to and to resume from; "" for
            none. A file named here would count as a part of the agent, which changes then.
        retries: further tries after an answer without a legal action.
    """

    def __init__(
        self, model: str, legal: str = "unlisted", answers: str = "", retries: int = 2
    ) -> None:
        super().__init__(self.ask, TextFormat(legal, retries=retries), model)
        self.client, self.model = OpenAI(max_retries=TRIES - 1), model
        Path(answers or ".").mkdir(parents=True, exist_ok=True)
        self.file = Path(answers, NAME) if answers else None
        self.lines = dict(read_lines(self.file) if self.file and self.file.exists() else ())

    def choose(self, game: Game, rng: np.random.Generator) -> str:
        """Return the label of the model's action, or of a random one."""
        try:
            return super().choose(game, rng)
        except TextError as error:
            if self.keep(REFUSED + key_of(self.spec + str(game)), str(error)):
                print(f"{self.spec}: {error}: plays at random", file=sys.stderr)
            return str(rng.choice(game.legal_labels()))

    def ask(self, prompt: str) -> str:
        """Return the model's answer to a prompt, "" for one that is cut or empty."""
        key = key_of(self.model + prompt)
        if key not in self.lines:
            completion = self.client.chat.completions.create(
                model=self.model, messages=[{"role": "user", "content": prompt}]
            )
            choice = completion.choices[0]
            if is_cut := choice.finish_reason == "length":  # perhaps within its reasoning
                print(f"{self.spec}: the server's limit of tokens cut an answer", file=sys.stderr)
            self.keep(key, "" if is_cut else choice.message.content or "")
        return self.lines[key]

    def keep(self, key: str, text: str) -> bool:
        """Store a text, and append it to the file; return whether its key is new."""
        is_new = key not in self.lines
        self.lines[key] = text
        if is_new and self.file is not None:
            with self.file.open("a", encoding="utf-8") as file:
                file.write(json.dumps([key, text]) + "\n")
        return is_new


def key_of(text: str) -> str:
    """Return a short name of a text: its SHA-256."""
    return hashlib.sha256(text.encode()).hexdigest()


def read_lines(file: Path) -> list[tuple[str, str]]:
    """Return the keys and texts of a file of answers; remove a last line that is incomplete."""
    whole, _, cut = file.read_bytes().rpartition(b"\n")
    if cut:
        file.write_bytes(whole + b"\n" if whole else b"")
    return [tuple(json.loads(line)) for line in whole.splitlines()]


if __name__ == "__main__":
    keys = [key for key, _ in read_lines(Path(sys.argv[1], NAME))]
    refused = sum(key.startswith(REFUSED) for key in keys)
    print(f"{len(keys) - refused:,} answers; {refused:,} decisions at random, without a legal one")
