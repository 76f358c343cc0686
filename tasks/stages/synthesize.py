"""Synthesize: counts become records, one table per set, block by block. Reads nothing confidential."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path

import pyarrow as pa

from schemas import tables
from schemas.errors import EvidenceBroken
from schemas.spec.release import Release
from steps_engine.domain.blocks import BLOCK
from steps_engine.methods.after_noise import Drawn
from steps_engine.methods.blocks import Block
from steps_engine.methods.protocol import Linking
from steps_engine.methods.registry import method_of
from steps_engine.noise import SystemRandomness
from tasks import progress
from tasks.parts_of_sets import Ready, blocks_in_turn, in_turn, keep_part, only, waiting
from tasks.reading.sources import short_lived
from tasks.stages.plan import load_plan
from tasks.stages.references import ConsistentReference, NoisyReference, PlanReference, SetReference, StructureReference
from tasks.stages.seeds import seeds_of
from tasks.stores.artifacts import Store
from tasks.stores.files import keep, private_folder, temporary
from tasks.stores.home import Home
from tasks.tables_on_disk import write_blocks

MOST_PARTS = 32  # of a set, each made by one worker


def synthesize(
    home: Home,
    release: Release,
    plan: PlanReference,
    tree: StructureReference,
    noisy: NoisyReference,
    consistent: ConsistentReference,
) -> tuple[SetReference, ...]:
    """Make the records of every set, or find those that were made."""
    numbers = set_numbers(home, plan)
    return tuple(synthesize_set(home, release, plan, tree, noisy, consistent, number) for number in numbers)


def set_numbers(home: Home, plan: PlanReference) -> range:
    return range(1, load_plan(Store(home), plan).sets + 1)


def synthesize_set(
    home: Home,
    release: Release,
    plan: PlanReference,
    tree: StructureReference,
    noisy: NoisyReference,
    consistent: ConsistentReference,
    number: int,
) -> SetReference:
    """Make the records of one set, or find them: of two who make it at the same time, one is heard."""
    store = Store(home)
    if found := _found(store, release, number):
        return found
    blocks = _blocks(store, release, plan, tree, noisy, consistent, number)
    if release.domain.tables is not None:
        return _linked(store, release, plan, tree, noisy, consistent, blocks, number)
    made = progress.told(((block.make, block.rows) for block in blocks), sum(block.rows for block in blocks))
    return _keep(store, release, number, made)


def parts_of(home: Home, release: Release, plan: PlanReference) -> int:
    """In how many parts workers make a set: about as many as it has blocks; 1 where it is expected to be a single one."""
    rows, method = release.domain.expected_units or 0, method_of(load_plan(Store(home), plan))
    is_shared = getattr(method, "blocks_apart", False) or isinstance(method, Linking)
    return min(MOST_PARTS, -(-rows // BLOCK)) if is_shared and rows > BLOCK else 1


@contextmanager
def room_for_sets(home: Home, release: Release, parts: int, numbers: Sequence[int]) -> Iterator[list[tuple[int, int, str]]]:
    """Of every set and part where it goes: gone afterwards, and after a crash when the sets are next made."""
    with short_lived(private_folder(home.staging / release.name), "parts") as folder:
        yield [(number, part, str(folder / f"{number}-{part}.parquet")) for number in numbers for part in range(parts)]


def make_part(
    home: Home,
    release: Release,
    plan: PlanReference,
    tree: StructureReference,
    noisy: NoisyReference,
    consistent: ConsistentReference,
    parts: int,
    part: tuple[int, int, str],
) -> None:
    """Make every so many-th block of a set, from one on; done twice, it gives the same."""
    (number, first, path), store = part, Store(home)
    if _found(store, release, number):
        return
    blocks = _once(_Shared(str(home.path), plan, tree, noisy, consistent, number, store, release))
    if len(blocks) == 1:  # has the set's own stream, which is there once
        blocks = _blocks(store, release, plan, tree, noisy, consistent, number)
    if release.domain.tables is not None:
        own = [replace(block, wanted=place % parts == first) for place, block in enumerate(blocks)]
        drawn = Drawn(release.domain, load_plan(store, plan), store.read(tree), store.read(noisy))
        keep_part(release, own, drawn.linked(method_of(drawn.plan), store.read(consistent), own, number), Path(path))
        return
    blocks = blocks[first::parts]
    with temporary(Path(path).parent) as file:
        write_blocks(file, (block.make() for block in blocks), tables.records(release.domain), f"part {first + 1}")
        keep(file, Path(path))


@dataclass(frozen=True)
class _Shared:
    """What the parts of a set are made from: references say all of it."""

    home: str
    plan: PlanReference
    tree: StructureReference
    noisy: NoisyReference
    consistent: ConsistentReference
    number: int
    store: Store = field(compare=False)
    release: Release = field(compare=False)


@lru_cache(maxsize=1)
def _once(of: _Shared) -> list[Block]:
    """A worker that makes several parts of a set makes what all of them share once: the estimate, and weights to begin from."""
    return _blocks(of.store, of.release, of.plan, of.tree, of.noisy, of.consistent, of.number)


def join_parts(home: Home, release: Release, number: int, parts: Sequence[str]) -> SetReference:
    """A set from its parts, block after block: the same files as one process would have made."""
    store = Store(home)
    if found := _found(store, release, number):
        return found
    if release.domain.tables is None:
        return _keep(store, release, number, in_turn(parts))
    return _keep_tables(store, release, number, lambda kind: blocks_in_turn(parts, kind))


def _found(store: Store, release: Release, number: int) -> SetReference | None:
    """A set that was made, with all that is linked to it."""
    found = store.find(release.name, f"synthetic-{number}", drawn=False)
    whole = all(store.find(release.name, f"{kind}-{number}", drawn=False) for kind in tables.linked(release.domain))
    return SetReference(found) if found and whole else None


def _keep(store: Store, release: Release, number: int, blocks: Iterator[pa.Table]) -> SetReference:
    schema = tables.records(release.domain)
    return SetReference(store.write(release.name, f"synthetic-{number}", blocks, schema, "public", drawn=False))


def _blocks(
    store: Store,
    release: Release,
    plan: PlanReference,
    tree: StructureReference,
    noisy: NoisyReference,
    consistent: ConsistentReference,
    number: int,
) -> list[Block]:
    """The blocks of a set, none of them made yet."""
    planned = load_plan(store, plan)
    drawn = Drawn(release.domain, planned, store.read(tree), store.read(noisy))
    source = None if seeds_of(store, release.name) else SystemRandomness()  # as an earlier version, which began, would go on
    return drawn.blocks(method_of(planned), store.read(consistent), number, source)


def _linked(
    store: Store,
    release: Release,
    plan: PlanReference,
    tree: StructureReference,
    noisy: NoisyReference,
    consistent: ConsistentReference,
    blocks: Sequence[Block],
    number: int,
) -> SetReference:
    """Household rows, once the households and persons that follow from them are kept."""
    planned = load_plan(store, plan)
    drawn = Drawn(release.domain, planned, store.read(tree), store.read(noisy))
    with _listened(blocks) as heard:
        made = drawn.linked(method_of(planned), store.read(consistent), heard, number)
        return _keep_all(store, release, number, made, len(blocks) > 1)


def _keep_all(store: Store, release: Release, number: int, made: Iterator[dict[str, pa.Table]], several: bool) -> SetReference:
    """The tables of a set, which are made side by side and kept one after the other: several blocks wait in files."""
    with waiting(store.home, release, made) if several else nullcontext(only(made)) as ready:
        return _keep_tables(store, release, number, ready)


def _keep_tables(store: Store, release: Release, number: int, ready: Ready) -> SetReference:
    for kind, schema in tables.linked(release.domain).items():
        store.write(release.name, f"{kind}-{number}", ready(kind), schema, "public", drawn=False)
    return _keep(store, release, number, ready(tables.SYNTHETIC))


@contextmanager
def _listened(blocks: Sequence[Block]) -> Iterator[list[Block]]:
    """The same blocks; whoever makes them in order is heard of."""
    made = progress.told(((block.make, block.rows) for block in blocks), sum(block.rows for block in blocks))
    yield [Block(block.rows, partial(next, made)) for block in blocks]
    next(made, None)  # the last one is done


def linked_tables(home: Home, release: Release, plan: PlanReference) -> tuple[SetReference, ...]:
    """Households and persons of every set, which are there when its household rows are; none where there is one table."""
    store = Store(home)
    names = [f"{kind}-{number}" for kind in tables.linked(release.domain) for number in set_numbers(home, plan)]
    found = [store.find(release.name, name, drawn=False) for name in names]
    if None in found:
        raise EvidenceBroken(f'a linked table of release "{release.name}" is gone. Restore it from its backup.')
    return tuple(SetReference(each) for each in found if each is not None)
