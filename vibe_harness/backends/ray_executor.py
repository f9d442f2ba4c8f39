"""Engines on a Ray cluster: a Ray Data pipeline of requests over a pool of workers, each with its own engine.

Ray starts the workers, distributes batches, and repeats the batches of a lost worker. The run folder stays on the
machine of the command and serves as the checkpoint: requests that it holds are not repeated.
"""

from __future__ import annotations

import logging
import math
import os
import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from pydantic import Field

from vibe_harness.backends.protocol import Backend, Options, open_backend
from vibe_harness.cards.loading import Task
from vibe_harness.cards.schema import ModelCard
from vibe_harness.errors import EngineError, HarnessError, UserError
from vibe_harness.records import Request, Response


class RaySettings(Options):
    """Options of `--executor-args`. None of them can change an answer."""

    workers: int = Field(1, ge=1, description="number of engines")
    gpus: float = Field(0, ge=0, description="GPUs of each worker")
    cpus: float = Field(1, ge=0, description="CPU cores of each worker")
    batch: int = Field(64, ge=1, description="requests in one batch of a worker; repeated if the worker is lost")
    address: str | None = Field(None, description="address of a running cluster; by default a new one on this machine")


class RayBackend:
    """One model on several workers, as one back end."""

    def __init__(self, settings: RaySettings, card: ModelCard, tasks: Sequence[Task]) -> None:
        """Join the cluster, or start one here. Raises UserError if ray is missing or the cluster cannot be reached."""
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # send no usage statistics
        os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # errors of a run arrive as exceptions
        try:
            import ray
        except ImportError:
            raise UserError("--executor ray needs the package ray: pip install 'vibe-harness[ray]'") from None
        self._settings, self._card, self._tasks = settings, card, list(tasks)
        self._described: Mapping[str, str] | None = None
        self._joined = not ray.is_initialized()
        if self._joined:
            try:
                ray.init(
                    address=settings.address,
                    include_dashboard=False,
                    log_to_driver=False,
                    logging_level=logging.ERROR,
                )
            except ConnectionError as error:
                raise UserError(f"no Ray cluster at {settings.address}: {error}") from None
        cluster: Any = ray  # typed only if ray is installed
        self._check_room(cluster.cluster_resources())

    def describe(self) -> Mapping[str, str]:
        """The description of the workers' engines; one is opened for it if no worker has answered yet."""
        import ray

        if self._described is None:
            look = ray.remote(num_cpus=self._settings.cpus, num_gpus=self._settings.gpus)(_look)
            with _plain_errors():
                self._described = ray.get(look.remote(self._card, self._tasks))
        how = {"executor": f"ray {ray.__version__}", "workers": str(self._settings.workers)}
        return {**self._described, **how}

    def generate(self, requests: Iterable[Request]) -> Iterator[Response]:
        """Yield answers as batches end, in any order. Raises EngineError if the workers' engines differ."""
        from ray import data

        rows = [{"request": pickle.dumps(request)} for request in requests]
        if not rows:
            return
        blocks = math.ceil(len(rows) / self._settings.batch)  # one batch per block
        workers = min(self._settings.workers, blocks)
        context = data.DataContext.get_current()
        context.enable_progress_bars = False
        context.print_on_execution_start = False
        answers = data.from_items(rows, override_num_blocks=blocks).map_batches(
            _Asker,
            fn_constructor_args=(self._card, self._tasks),
            batch_size=None,
            compute=data.ActorPoolStrategy(size=workers),
            num_cpus=self._settings.cpus,
            num_gpus=self._settings.gpus,
        )
        logging.getLogger("ray.data").setLevel(logging.CRITICAL)  # errors arrive as exceptions
        with _plain_errors():
            for row in answers.iter_rows():
                self._note(pickle.loads(row["engine"]))
                yield pickle.loads(row["response"])

    def close(self) -> None:
        """Leave the cluster; one that was started here ends."""
        import ray

        if self._joined:
            ray.shutdown()

    def _note(self, described: Mapping[str, str]) -> None:
        if self._described is None:
            self._described = described
        elif described != self._described:
            raise EngineError(
                f"two workers run different engines: {dict(self._described)} and {dict(described)}: answers of both "
                "would be mixed. Install the same versions on every machine of the cluster"
            )

    def _check_room(self, there: Mapping[str, float]) -> None:
        """Raise UserError if the cluster is too small for the workers, since Ray would wait forever."""
        settings = self._settings
        for name, each in (("CPU", settings.cpus), ("GPU", settings.gpus)):
            wanted, found = each * settings.workers, there.get(name, 0)
            if wanted > found:
                self.close()
                raise UserError(
                    f"--executor-args: {settings.workers} workers of {each:g} {name}s need {wanted:g}, the cluster has "
                    f"{found:g}: ask for fewer, or join more machines to it"
                )


class _Asker:
    """One worker with an engine. Ray creates it on the cluster."""

    def __init__(self, card: ModelCard, tasks: Sequence[Task]) -> None:
        self._backend: Backend = open_backend(card, tasks)
        self._engine = pickle.dumps(dict(self._backend.describe()))

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        requests = (pickle.loads(request) for request in batch["request"])
        answers = [pickle.dumps(response) for response in self._backend.generate(requests)]
        return {"response": _column(answers), "engine": _column([self._engine] * len(answers))}


def _column(items: Sequence[bytes]) -> np.ndarray[Any, np.dtype[np.object_]]:
    column = np.empty(len(items), dtype=object)
    column[:] = items
    return column


def _look(card: ModelCard, tasks: Sequence[Task]) -> dict[str, str]:
    """Open an engine and return its description."""
    backend = open_backend(card, tasks)
    try:
        return dict(backend.describe())
    finally:
        backend.close()


class _plain_errors:  # noqa: N801 (used as a statement)
    """Unwraps errors of this package from Ray's, and turns Ray's own into EngineError."""

    def __enter__(self) -> None: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        from ray.exceptions import RayError

        if not isinstance(error, RayError):
            return
        cause: BaseException | None = error
        while cause is not None:
            if isinstance(cause, HarnessError):
                raise type(cause)(str(cause).splitlines()[-1] if isinstance(cause, RayError) else str(cause)) from None
            cause = getattr(cause, "cause", None) or cause.__cause__
        raise EngineError(f"Ray: {type(error).__name__}: {str(error).strip().splitlines()[-1]}") from error
