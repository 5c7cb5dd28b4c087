"""Fuzz cases of single files: records, results, regret sets, ladders, submissions, policies."""

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import damaged_arrays
import mutants
import numpy as np
from fuzz import Cases, allow_refusal, run_command
from networks import decisions, random_policy
from regrets import drawn_sums, small_set, truth_of
from valid_files import GOLDEN, generalisation, with_hash

from tokaido_env import Board, Game
from tokaido_env.__main__ import main as command
from tokaido_env.agent import AgentError
from tokaido_env.agents.policy import LayerSizes, Policy, PolicyAgent, PolicyError
from tokaido_env.agents.registry import cost_of, make
from tokaido_env.agents.search import PolicySearchAgent
from tokaido_env.arena.ladder import LADDER, Ladder, LadderError, make_ladder
from tokaido_env.arena.match import GAME, Match
from tokaido_env.arena.placement import rate_on_ladder, submitted_rating
from tokaido_env.arena.rating_model import RatingError
from tokaido_env.arena.ratings import rate_differences
from tokaido_env.arena.result import Result, ResultError
from tokaido_env.arena.verification import SubmissionError, VerifiedSubmission, verify
from tokaido_env.files import file_sha256
from tokaido_env.observers import masks
from tokaido_env.record import Forfeit, RecordError, load, save
from tokaido_env.report.result_tables import tables_of
from tokaido_env.report.tables import table_text
from tokaido_env.study.regret import choose_actions, regret_measures, set_entry
from tokaido_env.study.regret_set import RegretSet, RegretSetError


class Records(Cases):
    """The golden games and a forfeited one: read, verified, printed and exported."""

    errors = (RecordError,)
    name = "games.jsonl"
    commands = (("replay",), ("replay", "--quiet"), ("export",), ("replay", "--html"))

    def set_up(self) -> None:
        self.records = load(GOLDEN / "games.jsonl")
        game = Game(seed=0)
        for _ in range(9):
            game.play(game.legal_actions()[0])
        seat = int(game.player == 1)
        lost = Forfeit(seat, "crash", "RuntimeError: no idea")
        self.records.append(replace(game.record(), forfeit=lost, end="forfeit", winner=1 - seat))
        self.games = [json.loads(record.to_json()) for record in self.records]

    def check_valid(self) -> None:
        for game in self.games:
            self.path.write_bytes(mutants.json_bytes(game) + b"\n")
            assert len(load(self.path)) == 1
            for words in self.commands:
                assert not self._run(words)

    def case(self, rng: random.Random) -> bool:
        if rng.random() < 0.05:
            return self._renamed(rng)
        taken = super().case(rng)
        if rng.random() < 0.1:
            assert bool(self._run(rng.choice(self.commands))) == (not taken)
        return taken

    def damage(self, rng: random.Random) -> None:
        lines = mutants.mutated_json(rng, rng.choice(self.games)) + b"\n"
        if rng.random() < 0.2:
            lines = mutants.json_bytes(rng.choice(self.games)) + b"\n" + lines
        self.path.write_bytes(lines)

    def check(self, rng: random.Random) -> None:
        """Save the loaded records and load them again."""
        records = load(self.path)
        again = self.path.with_name("again.jsonl")
        save(records, again)
        assert load(again) == records

    def _renamed(self, rng: random.Random) -> bool:
        """Save a record with damaged player names; it can be loaded, or is refused."""
        name = rng.choice((mutants.wrong_value, mutants.foreign_value))(rng)
        players: Any = rng.choice((name, (name, "b"), (mutants.wrong_value(rng), name)))
        with allow_refusal(RecordError) as messages:
            save([replace(rng.choice(self.records), players=players)], self.path)
            with allow_refusal(RecordError, names=self.path) as refused:
                self.check(rng)
        return not messages and not refused

    def _run(self, words: tuple[str, ...]) -> str:
        """Run a command on the file; check that a failure writes nothing."""
        name, *options = words
        out = {"export": ["out.parquet"], "--html": ["out.html"]}.get(words[-1], [])
        wrong = run_command(command, [name, self.path, *options, *out], self.path)
        assert not wrong or not any(Path(path).exists() for path in out)
        for path in out:
            Path(path).unlink(missing_ok=True)
        return wrong


class Results(Cases):
    """Results of `generalise`, `exploit` and `regret`, mostly with a matching hash."""

    errors = (ResultError,)
    name = "results.json"

    def set_up(self) -> None:
        generalised = generalisation()
        few = {"boards": generalised["boards"][:1], "scores": generalised["scores"][:2]}
        regret_set = small_set(most=4)
        measures = regret_measures(regret_set, choose_actions(make("greedy"), regret_set))
        regret = {"protocol": "regret", "boards": [set_entry(regret_set).to_dict()], "scores": []}
        regret |= {"agents": ["greedy"], "estimates": [one.to_dict() for one in measures]}
        curve = [one | {"group": "steps 8"} for one in generalised["scores"][:1]]
        exploit = {"protocol": "exploit", "scores": curve, "estimates": []}
        self.results = [
            with_hash(generalised | changes)
            for changes in ({}, {"trained_on": "shikoku"}, few, regret, exploit)
        ]

    def check_valid(self) -> None:
        for data in self.results:
            self.path.write_bytes(mutants.json_bytes(data))
            self.check(random.Random(0))

    def damage(self, rng: random.Random) -> None:
        data = mutants.mutated_tree(rng, rng.choice(self.results), 2)
        if rng.random() < 0.9 and isinstance(data, dict):
            data = with_hash(data)
        self.put_json(rng, data, odds=0.01)

    def check(self, rng: random.Random) -> None:
        """Load the result again, print it, and compare it with a valid one."""
        result = Result.load(self.path)
        again = self.path.with_name("again.json")
        result.save(again)
        assert Result.load(again) == result
        assert len(result.to_frame()) == len(result.scores) + len(result.estimates)
        with allow_refusal(ResultError):
            assert all(table_text(table, 80) for table in tables_of(result))
        if rng.random() < 0.1:
            other = self.folder / "other.json"
            other.write_bytes(mutants.json_bytes(self.results[0]))
            run_command(command, ("evaluate", "generalise", "--compare", other, self.path))


class Regrets(Cases):
    """A small regret set."""

    errors = (RegretSetError,)
    name = "set.npz"

    def set_up(self) -> None:
        rng, loaded = np.random.default_rng(0), small_set(most=4)
        self.valid = replace(
            loaded, sums=drawn_sums(loaded, truth_of(loaded, rng, 0.3), rng, few=2)
        )

    def check_valid(self) -> None:
        self.valid.save(self.path)
        assert RegretSet.load(self.path).hash == self.valid.hash

    def damage(self, rng: random.Random) -> None:
        """Damage the card or an array, with a matching hash, or the bytes of the file."""
        self.path.unlink(missing_ok=True)
        if rng.random() < 0.5:
            card = mutants.mutated_tree(rng, self.valid.card, 2)
            changed = {"card": card if isinstance(card, dict) else {}}
        else:
            name = rng.choice(("states", "board", "stratum", "starts", "actions", "sums"))
            changed = {name: damaged_arrays.damaged_array(rng, getattr(self.valid, name))}
        replace(self.valid, **changed).save(self.path)
        data = self.path.read_bytes()
        self.put(rng, data if rng.random() < 0.8 else mutants.mutated_bytes(rng, data), odds=0.02)

    def check(self, rng: random.Random) -> None:
        """Save the loaded set, load it again, and use it."""
        loaded = RegretSet.load(self.path)
        again = self.path.with_name("again.npz")
        loaded.save(again)
        assert RegretSet.load(again).hash == loaded.hash
        if rng.random() < 0.1:
            assert regret_measures(loaded, choose_actions(make("greedy"), loaded))


class Ladders(Cases):
    """The shipped ladder and short ones: agents are placed, and ladders continued, by fakes."""

    errors = (LadderError, AgentError)
    name = "ladder.json"
    specs = (
        *("random", "greedy", "policy:best", "policy:other", "policy:../best", "mcts:sims=999999"),
        *("champion", "policy:fifo", "nobody", "exploiter:heuristic", "mcts:sims=0"),
        *("python:subprocess:Popen,args=echo", "python:custom_agents:Trace,path=trace"),
        "exec:touch trace",
    )

    def set_up(self) -> None:
        self.board = Board.load()
        whole = json.loads(LADDER.read_text(encoding="utf-8"))
        few = {"greedy", "heuristic", "mcts:sims=100", "champion"}
        matches = [one for one in whole["scores"] if few >= {one["a"], one["b"]}]
        played = {one[side] for one in matches for side in "ab"}
        ratings = [one for one in whole["estimates"] if one["agent"] in played]
        short = whole | {"anchor": "greedy", "estimates": ratings, "scores": matches}
        unfinished = short | {"estimates": []}
        self.ladders = (whole, short, unfinished)
        random_policy().save(self.folder / "best")

    def check_valid(self) -> None:
        for data in self.ladders:
            self.path.write_bytes(mutants.json_bytes(with_hash(data)))
            self.check(random.Random(0))
        assert len(self.ladders[1]["estimates"]) > 2

    def damage(self, rng: random.Random) -> None:
        """Damage a ladder, mostly with a matching hash."""
        data: Any = rng.choices(self.ladders, (1, 9, 3))[0]
        if rng.random() < 0.2:
            old, new = rng.choice(data["scores"])["a"], rng.choice(self.specs)
            data = json.loads(json.dumps(data).replace(json.dumps(old), json.dumps(new)))
        data = mutants.mutated_tree(rng, data, 2)
        if rng.random() < 0.9 and isinstance(data, dict):
            data = with_hash(data)
        self.put_json(rng, data, odds=0.01)

    def check(self, rng: random.Random) -> None:
        board = rng.choice((None, self.board))
        again = self.path.with_name("again.json")
        Ladder.load(self.path, board).result.save(again)
        ladder = Ladder.load(again, board)
        assert ladder.result.to_dict() == json.loads(again.read_bytes())
        if rng.random() < 0.15:
            self._place(rng, ladder)
        if rng.random() < 0.15:
            self._continue(rng, ladder, again)

    def _place(self, rng: random.Random, ladder: Ladder) -> None:
        """Place an agent by fake games, unless the ladder allows none."""
        for one in ladder.agents:
            assert cost_of(one.agent) >= 0
        with allow_refusal(LadderError, RatingError):
            rate_differences(ladder.matches, seed=ladder.seed, resamples=10)
            rated = rate_on_ladder(
                *("heuristic", ladder), play=_fake_match, opponents=rng.randint(1, 3), resamples=10
            )
            low, high = rated.estimate("Elo").interval
            assert low <= high
            json.dumps(rated.to_dict(), allow_nan=False)

    def _continue(self, rng: random.Random, ladder: Ladder, path: Path) -> None:
        """Continue the ladder by fake games, unless that is refused."""
        names = list(dict.fromkeys(name for match in ladder.matches for name in (match.a, match.b)))
        rng.shuffle(names)
        agents = [*names[: rng.randint(2, 9)], "heuristic"][-4:]
        before = path.read_bytes()
        with allow_refusal(LadderError, RatingError, ValueError) as messages:
            made = make_ladder(agents, lambda a, b: 2, ladder.seed, self.board, _fake_match, path)
            assert {one.agent for one in made.agents} == set(agents)
        if messages and "settle" not in messages[0]:
            assert path.read_bytes() == before


def _fake_match(a: str, b: str, games: int, seed: int) -> Match:
    """Return a match in which `a` wins every second pair."""
    data = np.zeros((games // 2, 2), GAME)
    data["seed"] = np.arange(games // 2)[:, None]
    data["result"][::2] = 1.0
    return Match(a, b, data, np.zeros((games // 2, 2, 0), np.int8))


class Submissions(Cases):
    """A rating on a small ladder and its records, one of them damaged."""

    errors = (ResultError, SubmissionError, RecordError, AgentError, LadderError, RatingError)
    name = "mine.json"

    def set_up(self) -> None:
        self.ladder, self.records = self.folder / "ladder.json", self.folder / "games.jsonl"
        ladder = ("--ladder", self.ladder, "--games", "12")
        run_command(command, ("evaluate", "ladder", "random", "heuristic", *ladder))
        files = ("--json", self.path, "--records", self.records)
        run_command(command, ("evaluate", "rate", "greedy", *ladder, *files))
        self.games = self.records.read_bytes()
        self.valid = json.loads(self.path.read_bytes())

    def check_valid(self) -> None:
        self._write_valid()
        assert self._verified(share=1.0).games == 24

    def case(self, rng: random.Random) -> bool:
        with allow_refusal(*self.errors) as messages:
            rng.choice((self._case_of_submission, self._case_of_records))(rng)
        return not messages

    def _verified(self, share: float) -> VerifiedSubmission:
        return verify(submitted_rating(self.path, self.ladder), make, share=share)

    def _write_valid(self) -> None:
        for path in (self.path, self.records):
            path.unlink(missing_ok=True)  # it may be a link
        self.path.write_bytes(mutants.json_bytes(self.valid))
        self.records.write_bytes(self.games)

    def _case_of_submission(self, rng: random.Random) -> None:
        self._write_valid()
        data = mutants.mutated_tree(rng, self.valid, 2)
        self.put_json(rng, with_hash(data) if isinstance(data, dict) else data, 0.02)
        self._verified(share=rng.choice((0.0, 0.3)))

    def _case_of_records(self, rng: random.Random) -> None:
        """Damage the records, mostly with a matching hash in the submission."""
        self._write_valid()
        games = mutants.mutated_bytes(rng, self.games, 2)
        if rng.random() < 0.5:
            lines = self.games.splitlines()
            place = rng.randrange(len(lines))
            lines[place] = mutants.json_bytes(
                mutants.mutated_tree(rng, json.loads(lines[place]), 1)
            )
            games = b"\n".join(lines) + b"\n"
        self.put(rng, games, 0.02, self.records)
        if not self.records.is_symlink() and rng.random() < 0.9:
            loaded = dict(self.valid["records"], sha256=file_sha256(self.records))
            self.path.write_bytes(mutants.json_bytes(with_hash(self.valid | {"records": loaded})))
        self._verified(share=0.0)


class Policies(Cases):
    """Small policies with and without board features, and positions of all phases."""

    errors = (PolicyError,)
    name = "policy"

    def set_up(self) -> None:
        self.files = []
        for uses_board_features in (False, True):
            random_policy(LayerSizes(8, 3, 2, 8, 3), uses_board_features=uses_board_features).save(
                self.path
            )
            self.files.append(self.path.read_bytes())
        boards, states, legal = decisions(("shikoku", "family:7"), games=6, moves=40, most=2)
        self.positions = boards, states, legal, np.arange(len(states), dtype=np.uint64)
        self.rows = masks(legal)

    def check_valid(self) -> None:
        assert len(np.unique(self.positions[1]["phase"])) > 2
        for file in self.files:
            self.path.write_bytes(file)
            self.check(random.Random(0))
            self._search(Policy.load(self.path))

    def damage(self, rng: random.Random) -> None:
        file = rng.choice(self.files)
        how = (
            self._with_damaged_header if rng.random() < 0.17 else damaged_arrays.damaged_safetensors
        )
        self.put(rng, how(rng, file), odds=0.01)
        if rng.random() < 0.01 and self.path.is_file():
            with self.path.open("r+b") as opened:
                opened.truncate(rng.choice((0, 8, 2**20, 2**35)))

    def _with_damaged_header(self, rng: random.Random, file: bytes) -> bytes:
        """Return the file with a damaged value in its header."""
        header, numbers = damaged_arrays.safetensors_parts(file)
        loaded = header["__metadata__"]
        key = "training" if rng.random() < 0.7 else rng.choice(list(loaded))
        text = mutants.mutated_json(rng, {"steps": 3, "settings": {"agents": "greedy", "games": 8}})
        loaded[key] = text.decode("utf-8", "replace")
        return damaged_arrays.safetensors_bytes(header, numbers)

    def check(self, rng: random.Random) -> None:
        """Save the loaded policy, load it again, and use it in all positions."""
        policy = Policy.load(self.path)
        policy.save(self.path.with_name("again"))
        again = Policy.load(self.path.with_name("again"))
        assert json.dumps(again.training) == json.dumps(policy.training)
        for name, tensor in policy.tensors.items():
            assert again.tensors[name].tobytes() == tensor.tobytes()
        for temperature in rng.sample((0.0, 1e-310, 0.01, 1.0, 10.0), 2):
            agent = PolicyAgent.from_policy(policy, "policy:x", temperature)
            chosen = agent.act(*self.positions)
            assert self.rows[np.arange(len(chosen)), chosen].all()
        probabilities, values = agent.judge(*self.positions)
        assert np.allclose(probabilities.sum(axis=1), 1, atol=1e-4)
        assert (probabilities[~self.rows] == 0).all()
        assert (np.abs(values) <= 1).all()
        if rng.random() < 0.05:
            self._search(policy)

    def _search(self, policy: Policy) -> None:
        chosen = PolicySearchAgent.from_policy(policy, "x", 4).act(*self.positions)
        assert self.rows[np.arange(len(chosen)), chosen].all()
