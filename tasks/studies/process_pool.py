"""Worker processes for work that fills a core: one BLAS thread each, replaced when one dies, gone when we are."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.process import BaseProcess
from typing import Any

from schemas.errors import InfrastructureFault, StepsError

_ONE_THREAD = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}


def cores() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class ProcessPool:
    """Runs functions in processes of its own; a call blocks its thread until the answer is there."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._lock, self._closed = threading.Lock(), False
        self._pool = self._new_pool()

    def __enter__(self) -> ProcessPool:
        return self

    def __exit__(self, *_: object) -> None:
        """Ends the processes at once: what they had not written is computed by the next run."""
        self._closed = True
        workers = list((self._pool._processes or {}).values())
        self._pool.shutdown(wait=False, cancel_futures=True)
        for worker in workers:
            worker.terminate()

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        pool = self._pool
        try:
            return pool.submit(function, *arguments).result()
        except (BrokenProcessPool, RuntimeError) as error:
            if self._closed:
                raise StepsError("the study was stopped; run it again to go on.") from None
            if not isinstance(error, BrokenProcessPool):
                raise
            self._replace(pool)
        raise InfrastructureFault("a worker process died (out of memory?); its work is begun again.")

    def _replace(self, broken: ProcessPoolExecutor) -> None:
        with self._lock:
            if self._pool is broken:
                broken.shutdown(wait=False, cancel_futures=True)
                self._pool = self._new_pool()

    def _new_pool(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(self.size, multiprocessing.get_context("spawn"), initializer=_prepare_worker)


def _prepare_worker() -> None:
    """In a new worker: one BLAS thread, Ctrl-C is the parent's business, and no life after the parent's."""
    os.environ.update(_ONE_THREAD)
    from threadpoolctl import threadpool_limits

    threadpool_limits(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if parent := multiprocessing.parent_process():
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: BaseProcess) -> None:
    parent.join()
    os._exit(1)
