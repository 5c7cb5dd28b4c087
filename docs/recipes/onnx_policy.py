"""Export a policy file or a MaskablePPO to ONNX, and play it with onnxruntime, without PyTorch.

    pip install onnxruntime onnxscript
    python docs/recipes/onnx_policy.py runs/mine/best value.onnx
    tokaido evaluate python:docs/recipes/onnx_policy.py:ValueAgent,file=value.onnx greedy
    python docs/recipes/onnx_policy.py model.zip policy.onnx
    tokaido evaluate python:docs/recipes/onnx_policy.py:PolicyAgent,file=policy.onnx greedy

The network of a policy file is the value of afterstates; that of a MaskablePPO gives the logits of
all actions, and the agent applies the mask.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import numpy.typing as npt

from tokaido_env.agent import Agent
from tokaido_env.core.actions import N_ACTIONS
from tokaido_env.features.afterstates import END
from tokaido_env.observers import afterstates, masks, observe


class OnnxAgent(Agent):
    """Plays the action with the highest score of a network.

    Args:
        file: the exported network.
    """

    spec = "onnx"

    def __init__(self, file: str) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1  # small products; also, several agents may share a machine
        self.session = onnxruntime.InferenceSession(file, options)

    def run(self, inputs: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Return the network's outputs (n, …) of inputs (n, …)."""
        outputs: npt.NDArray[np.float32] = self.session.run(None, {"inputs": inputs})[0]
        return outputs

    def scores(self, boards: Any, states: Any, legal: Any) -> npt.NDArray[np.float32]:
        """Return the scores of actions (n, N_ACTIONS), -inf where illegal."""
        raise NotImplementedError

    def act(self, boards: Any, states: Any, legal: Any, keys: Any) -> npt.NDArray[np.int64]:
        """Return actions, as `Agent.act`."""
        best: npt.NDArray[np.int64] = self.scores(boards, states, legal).argmax(axis=1)
        return best


class ValueAgent(OnnxAgent):
    """Plays the best afterstate by the value network of a policy file."""

    def scores(self, boards: Any, states: Any, legal: Any) -> npt.NDArray[np.float32]:
        """Return the values of afterstates for the player to decide."""
        after = afterstates(boards, states, legal)
        values = self.run(after.inputs)[:, 0]
        values *= np.where(after.viewer == states["player"][after.game], 1, -1)
        scores = np.full((len(states), N_ACTIONS), -np.inf, np.float32)
        scores[after.game, after.action] = np.where(after.kind == END, after.result, values)
        return scores


class PolicyAgent(OnnxAgent):
    """Plays the likeliest legal action by the logits of a MaskablePPO."""

    def scores(self, boards: Any, states: Any, legal: Any) -> npt.NDArray[np.float32]:
        """Return the logits."""
        logits = self.run(observe(boards, states))  # type: ignore[arg-type]
        return np.where(masks(legal), logits, -np.inf)


def value_network(file: str) -> Any:
    """Return the network of a policy file as a module: inputs (n, 731) to values (n, 1)."""
    import torch
    from torch import nn

    from tokaido_env.agents.policy import Policy

    policy = Policy.load(file)
    layers: list[nn.Module] = []
    for name in ("first", "second", "value"):
        weight, bias = (torch.from_numpy(policy.tensors[f"{name}.{k}"]) for k in ("weight", "bias"))
        layer = nn.Linear(*weight.T.shape)
        layer.load_state_dict({"weight": weight, "bias": bias})
        layers += [layer, nn.ReLU()]
    return nn.Sequential(*layers[:-1], nn.Tanh())


def logits_network(file: str) -> Any:
    """Return the policy of a saved MaskablePPO as a module: observations (n, 337) to logits."""
    from sb3_contrib import MaskablePPO
    from torch import nn

    policy = MaskablePPO.load(file, device="cpu").policy
    if policy.observation_space.dtype != np.float32:
        raise ValueError(f"{file}: expected a model of float32 observations")
    return nn.Sequential(
        policy.pi_features_extractor, policy.mlp_extractor.policy_net, policy.action_net
    )


def export(file: str, onnx: str) -> None:
    """Write the network of a policy file, or of a MaskablePPO in a .zip file, as ONNX."""
    import torch

    network = logits_network(file) if file.endswith(".zip") else value_network(file)
    inputs = next(network.parameters()).shape[1]
    torch.onnx.export(
        network.eval(),
        (torch.zeros(2, inputs),),
        onnx,
        input_names=["inputs"],
        dynamic_shapes=[{0: torch.export.Dim("n")}],
        external_data=False,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Export a network to ONNX.")
    parser.add_argument("file", help="a policy file, or a saved MaskablePPO (.zip)")
    parser.add_argument("onnx", help="the file to write")
    export(**vars(parser.parse_args()))
