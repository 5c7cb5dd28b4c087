"""The tables of the afterstate observation."""

import numpy as np

from tokaido_env import FEATURES
from tokaido_env.features.afterstate_observation import AFTERSTATE_FEATURES, AFTERSTATE_INPUTS
from tokaido_env.features.network_inputs import INPUT_UNITS, N_AFTERSTATE, N_INPUTS


def test_tables__describe_every_number_once() -> None:
    for table, size in ((AFTERSTATE_INPUTS, N_INPUTS), (AFTERSTATE_FEATURES, N_AFTERSTATE)):
        assert len({each.name for each in table}) == len(table)
        numbers = np.concatenate([np.arange(size)[each.slice] for each in table])
        assert numbers.tolist() == list(range(size))
    first = [(each.name, each.slice) for each in AFTERSTATE_INPUTS[: len(FEATURES)]]
    assert first == [(each.name, each.slice) for each in FEATURES]
    units = np.repeat([e.unit for e in AFTERSTATE_INPUTS], [e.size for e in AFTERSTATE_INPUTS])
    rounded = INPUT_UNITS == 1 / 64  # the forward pass rounds values, the observation does not
    assert np.array_equal(units.astype(np.float32)[~rounded], INPUT_UNITS[~rounded])
