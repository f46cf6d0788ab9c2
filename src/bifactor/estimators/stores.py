"""Fits to data in the blocks of a store, which are never in memory as a whole."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from bifactor.errors import InputError
from bifactor.estimators.inputs import note_columns
from bifactor.estimators.watched import fit_watched
from bifactor.executors import Executor
from bifactor.models.block_fitting import fit_blocks, some_of
from bifactor.models.block_views import BlockView
from bifactor.models.fitting import Settings
from bifactor.models.model import Model
from bifactor.models.noise_choice import MANY
from bifactor.models.scoring import mean_noise
from bifactor.tables import BlockStore, Observations
from bifactor.tables.store.manifest import MANIFEST
from bifactor.validation import require_instance


def given_store(X: Any, long: bool = False) -> BlockStore | None:
    """X as a store, or the store in a folder with this name; None if X is anything else.

    With `long`, None is also returned for other folders.
    """
    if isinstance(X, BlockStore):
        return X
    if not isinstance(X, (str, os.PathLike)) or not Path(X).is_dir():
        return None
    return BlockStore.open(X) if not long or (Path(X) / MANIFEST).is_file() else None


def held(data: Observations | BlockStore) -> Observations:
    """Observations in memory; raises `InputError` if they are in blocks."""
    if isinstance(data, Observations):
        return data
    raise InputError(
        f"The data of this fit are in {data.folder}, not in memory. Use predict, recommend or transform, or fit again."
    )


class FromStore:
    """Fits to data in blocks; a mixin for `Factorised`."""

    executor: Any

    def _view(self: Any, store: BlockStore) -> BlockView:
        """The store, with values encoded for the loss."""
        return BlockView(store)

    def _fit_blocks(self: Any, data: BlockView, settings: Settings, start: Model | None) -> Model:
        return fit_blocks(data, settings, start)

    def _fitted_store(self: Any, settings: Settings, store: BlockStore, sample_weight: Any = None) -> Any:
        if sample_weight is not None:
            raise InputError("A block store contains its own weights. Leave out sample_weight.")
        for name in ("user_features", "item_features"):
            if getattr(self, name, None) is not None:
                raise InputError(f"{name} needs data in memory, but these are in blocks. Leave it out.")
        if settings.implicit and settings.posterior:
            raise InputError("implicit_features=True needs data in memory. Pass False or 'auto'.")
        if self.executor is not None:
            require_instance(self.executor, Executor, "executor")
        settings = replace(settings, executor=self.executor)
        data = self._view(store)
        note_columns(self, store.shape[1])
        start = getattr(self, "model_", None) if self.warm_start else None
        model = fit_watched(self, store, data, settings, start, self._fit_blocks)
        self._keep(model, store)
        some = None if model.posterior is None else some_of(data, MANY)
        self._note(model, None if some is None else mean_noise(model.posterior_or_advice(), some))
        return self
