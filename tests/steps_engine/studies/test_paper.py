"""The paper's printed figures, and where they contradict each other."""

from __future__ import annotations

import pandas as pd

from steps_engine.studies import paper
from steps_engine.studies.ranking import ranks, scores

KEYS = ["log_epsilon", "method"]


def rows(table: pd.DataFrame) -> set[tuple]:
    return set(table.itertuples(index=False, name=None))


def test_every_figure_of_the_table_is_there():
    table = paper.utility()
    assert len(table) == 5 * 6 * 8 and not table.duplicated([*KEYS, "measure"]).any()
    assert set(table["method"]) == set(paper.METHODS) and table["value"].between(0, 1).all()


def test_the_printed_ranks_follow_from_the_printed_figures_but_for_five():
    table = paper.utility().assign(found=lambda t: ranks(t))
    wrong = table[table["found"] != table["rank"]]
    assert rows(wrong[[*KEYS, "measure", "rank", "found"]]) == {
        (-2, "flat", "overlap prereg_state", 4, 3.0),  # 0.872 is more than the 0.865 that is ranked before it
        (-2, "uh-2", "overlap prereg_state", 3, 4.0),
        (1, "steps-3", "agreement 0.05", 2, 3.0),  # 0.248 shares the rank of 0.257
        (2, "privbayes", "agreement 0.1", 7, 6.0),  # seventh of six
        (2, "uh-2", "agreement 0.1", 6, 5.0),
    }


def test_the_printed_scores_are_the_sums_of_the_printed_ranks():
    found = scores(paper.utility())
    assert rows(found.astype({"score": int})) == rows(paper.scores())


def test_each_cross_table_holds_all_105_pairs_and_one_printed_diagonal_is_off_by_one():
    table = paper.classes()
    assert (table.groupby(KEYS)["count"].sum() == 105).all()
    diagonal = table[table["original"] == table["synthetic"]].groupby(KEYS)["count"].sum().rename("found").reset_index()
    joined = diagonal.merge(paper.diagonals(), on=KEYS)
    assert rows(joined[joined["found"] != joined["count"]]) == {(2, "uh-2", 30, 29)}


def test_cross_tables_give_the_printed_agreement_but_for_one():
    """Two separately printed tables that agree in 89 of 90 figures: a check of the transcription as well."""
    table, wrong = paper.classes(), set()
    for below, alpha in ((1, "0.01"), (2, "0.05"), (3, "0.1")):
        same = table[(table["original"] < below) == (table["synthetic"] < below)]
        found = same.groupby(KEYS)["count"].sum().div(105).rename("found").reset_index()
        joined = paper.utility().query("measure == @name", local_dict={"name": f"agreement {alpha}"}).merge(found, on=KEYS)
        off = joined[(joined["found"] - joined["value"]).abs() > 0.0006]
        wrong |= {(*key, alpha) for key in rows(off[KEYS])}
    assert wrong == {(2, "steps-3", "0.01")}


def test_a_further_method_is_ranked_as_if_it_had_entered_alone():
    table = paper.utility().drop(columns="rank")
    ours = table[table["method"] == "privbayes"].assign(method="ours")
    ours = ours.assign(value=ours["value"].where(ours["measure"] != "ks", 0.1))
    both = pd.concat([table, ours], ignore_index=True)
    both = both.assign(rank=ranks(both))
    assert (both.query("method == 'ours' and measure == 'ks'")["rank"] == 1).all()
    six = both[both["method"] != "ours"].reset_index(drop=True)
    assert six["rank"].equals(ranks(table))


def test_without_rivals_there_is_no_rank():
    alone = pd.DataFrame({"log_epsilon": [0.0], "method": ["ours"], "measure": ["ks"], "value": [0.5]})
    assert ranks(alone).isna().all()
