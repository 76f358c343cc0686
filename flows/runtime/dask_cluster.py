"""Worker processes of this machine for one run: needs the extra `dask`."""

from __future__ import annotations

import logging
from contextlib import suppress
from multiprocessing import resource_tracker
from typing import Literal

import dask
from distributed import LocalCluster, Nanny

from flows.runtime.interrupts import unheard_by_children


class PatientNanny(Nanny):
    """By the time that waiting for a worker ends it was sent SIGKILL, so what a flow has done does not fail over it."""

    async def close(self, timeout: float = 5, reason: str = "nanny-close") -> Literal["OK"]:  # type: ignore[override]
        with suppress(TimeoutError):
            await super().close(timeout, reason)
        return "OK"


def local_cluster(workers: int) -> LocalCluster:
    """Reached over loopback with keys made for this run: no other account gets a task in."""
    dask.config.set({"distributed.scheduler.http.routes": [], "distributed.worker.http.routes": []})  # pages show tasks
    resource_tracker.ensure_running()  # started later, it would unblock Ctrl-C
    with unheard_by_children():
        return LocalCluster(  # type: ignore[no-untyped-call]  # distributed annotates no constructor
            n_workers=workers,
            threads_per_worker=1,
            worker_class=PatientNanny,
            host="127.0.0.1",
            security=True,
            dashboard_address=None,
            scheduler_kwargs={"dashboard_address": "127.0.0.1:0", "dashboard": False},
            memory_limit=None,
            silence_logs=logging.CRITICAL,
        )
