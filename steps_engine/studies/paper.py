"""What Bowen, Liu and Su printed about the voter data: their Table 3 (utility) and the appendix, Tables 4 to 9.

Transcribed digit for digit, slips of the print included (a rank of 7 among six methods, for one): ranking.py and its
tests say where the printed ranks and counts do not follow from the printed figures.
"""

from __future__ import annotations

import pandas as pd

SOURCE = "Bowen, Liu, Su: Differentially Private Data Release via Statistical Election to Partition Sequentially"
METHODS = ("flat", "privbayes", "uh-2", "uh-3", "steps-2", "steps-3")
MEASURES = (
    "ks", "agreement 0.01", "agreement 0.05", "agreement 0.1",
    "overlap all", "overlap prereg_state", "overlap registered", "overlap prereg_state:registered",
)  # fmt: skip

# log ε, method, eight times (figure, rank), overall score
_UTILITY = """
-2 flat      0.981 6  0.190 1  0.210 1  0.210 1  0.092 3  0.872 4  0.637 3  0.872 3   22
-2 privbayes 0.462 1  0.152 6  0.143 6  0.105 6  0.043 6  0.681 6  0.000 6  0.681 6   43
-2 uh-2      0.973 4  0.162 2  0.152 2  0.114 2  0.099 1  0.865 3  0.602 4  0.865 4   22
-2 uh-3      0.957 3  0.162 2  0.152 2  0.114 2  0.093 2  0.848 5  0.495 5  0.848 5   26
-2 steps-2   0.975 5  0.162 2  0.152 2  0.114 2  0.090 4  0.874 1  0.661 1  0.874 1   18
-2 steps-3   0.956 2  0.162 2  0.152 2  0.114 2  0.090 4  0.873 2  0.659 2  0.873 2   18
-1 flat      0.978 6  0.181 1  0.210 1  0.210 1  0.102 1  0.871 3  0.638 3  0.871 3   19
-1 privbayes 0.422 1  0.152 6  0.143 6  0.105 6  0.050 6  0.681 6  0.000 6  0.681 6   43
-1 uh-2      0.971 4  0.162 2  0.152 4  0.114 4  0.098 2  0.865 4  0.602 4  0.865 4   28
-1 uh-3      0.954 2  0.162 2  0.152 4  0.114 4  0.092 3  0.839 5  0.445 5  0.839 5   30
-1 steps-2   0.971 4  0.162 2  0.171 2  0.133 2  0.090 5  0.874 1  0.667 1  0.874 1   18
-1 steps-3   0.954 2  0.162 2  0.171 2  0.133 2  0.091 4  0.874 1  0.666 2  0.874 1   16
 0 flat      0.968 6  0.190 1  0.210 1  0.210 1  0.108 1  0.871 4  0.641 3  0.871 4   21
 0 privbayes 0.272 1  0.152 6  0.143 6  0.114 4  0.076 6  0.943 1  0.000 6  0.962 1   31
 0 uh-2      0.964 4  0.162 4  0.152 4  0.114 4  0.106 2  0.864 5  0.605 4  0.864 5   32
 0 uh-3      0.945 2  0.162 4  0.152 4  0.114 4  0.090 3  0.838 6  0.446 5  0.838 6   34
 0 steps-2   0.965 5  0.181 2  0.171 2  0.133 2  0.090 3  0.873 2  0.671 1  0.873 2   19
 0 steps-3   0.945 2  0.181 2  0.171 2  0.133 2  0.090 3  0.873 2  0.671 1  0.873 2   16
 1 flat      0.930 4  0.276 1  0.371 1  0.448 1  0.092 4  0.867 4  0.651 4  0.867 4   23
 1 privbayes 0.187 1  0.171 4  0.171 6  0.133 6  0.102 2  0.978 1  0.847 1  0.990 1   22
 1 uh-2      0.944 5  0.162 5  0.200 4  0.219 4  0.125 1  0.863 5  0.612 5  0.863 5   34
 1 uh-3      0.919 2  0.162 5  0.181 5  0.219 4  0.096 3  0.837 6  0.453 6  0.837 6   37
 1 steps-2   0.944 5  0.200 2  0.257 2  0.238 2  0.091 5  0.871 2  0.677 2  0.871 2   22
 1 steps-3   0.919 2  0.200 2  0.248 2  0.238 2  0.084 6  0.871 2  0.676 3  0.871 2   21
 2 flat      0.833 2  0.467 1  0.552 1  0.629 1  0.104 1  0.862 4  0.684 4  0.862 4   18
 2 privbayes 0.157 1  0.190 6  0.181 6  0.143 7  0.099 3  0.988 1  0.983 1  0.971 1   26
 2 uh-2      0.885 5  0.352 4  0.400 4  0.410 6  0.100 2  0.860 5  0.635 5  0.860 5   36
 2 uh-3      0.843 3  0.305 5  0.390 5  0.457 4  0.076 5  0.849 6  0.553 6  0.849 6   40
 2 steps-2   0.886 6  0.400 2  0.448 2  0.486 2  0.093 4  0.865 2  0.696 2  0.865 2   22
 2 steps-3   0.843 3  0.400 2  0.448 2  0.486 2  0.076 5  0.865 2  0.695 3  0.865 2   21
"""

# log ε, method, original classes (rows) × synthetic classes of p-values, printed sum of the diagonal
_CLASSES = """
-2 flat       5  5  0 79   0  0  0  1   0  2  0  2   1  0  0 10   15
-1 flat       4  6  0 79   0  0  0  1   0  2  0  2   1  0  0 10   14
 0 flat       5  5  0 79   0  0  0  1   0  2  0  2   1  0  0 10   15
 1 flat      19 12  4 54   0  0  0  1   3  1  0  0   3  0  0  8   27
 2 flat      41 11  6 31   0  0  0  1   4  0  0  0   4  1  2  4   45
-2 privbayes  0  0  0 89   0  0  0  1   0  0  0  4   0  0  0 11   11
-1 privbayes  0  0  0 89   0  0  0  1   0  0  0  4   0  0  0 11   11
 0 privbayes  0  0  1 88   0  0  0  1   0  0  0  4   0  0  0 11   11
 1 privbayes  2  1  0 86   0  0  0  1   0  0  0  4   0  0  0 11   13
 2 privbayes  4  0  0 85   0  0  0  1   0  0  0  4   0  0  0 11   15
-2 uh-2       1  0  0 88   0  0  0  1   0  0  0  4   0  0  0 11   12
-1 uh-2       1  0  0 88   0  0  0  1   0  0  0  4   0  0  0 11   12
 0 uh-2       1  0  0 88   0  0  0  1   0  0  0  4   0  0  0 11   12
 1 uh-2       1  7  4 77   0  0  0  1   0  2  0  2   0  0  2  9   10
 2 uh-2      22  8  5 54   0  0  0  1   0  0  1  3   1  2  1  7   29
-2 uh-3       1  0  0 88   0  0  0  1   0  0  0  4   0  0  0 11   12
-1 uh-3       1  0  0 88   0  0  0  1   0  0  0  4   0  0  0 11   12
 0 uh-3       1  0  0 88   0  0  0  1   0  0  0  4   0  0  0 11   12
 1 uh-3       1  6  5 77   0  0  0  1   0  2  0  2   0  1  1  9   10
 2 uh-3      20 13  8 48   0  0  0  1   1  1  0  2   3  2  1  5   25
-2 steps-2    1  0  0 88   0  0  0  1   0  0  0  4   0  0  0 11   12
-1 steps-2    1  2  0 86   0  0  0  1   0  0  0  4   0  0  0 11   12
 0 steps-2    3  0  0 86   0  0  0  1   0  0  0  4   0  0  0 11   14
 1 steps-2    5  8  4 72   0  0  0  1   0  0  0  4   0  1  2  8   13
 2 steps-2   30  7  8 44   0  0  0  1   0  0  0  4   4  1  0  6   36
-2 steps-3    1  0  0 88   0  0  0  1   0  0  0  4   0  0  0 11   12
-1 steps-3    1  2  0 86   0  0  0  1   0  0  0  4   0  0  0 11   12
 0 steps-3    3  0  0 86   0  0  0  1   0  0  0  4   0  0  0 11   14
 1 steps-3    5  8  3 73   0  0  0  1   0  0  0  4   0  2  0  9   14
 2 steps-3   30  7  8 44   0  0  0  1   0  0  0  4   3  2  0  6   36
"""


def utility() -> pd.DataFrame:
    """Table 3, one row per log ε, method and measure: value and printed rank."""
    rows = []
    for line in _UTILITY.strip().splitlines():
        log_epsilon, method, *figures, _ = line.split()
        pairs = zip(MEASURES, figures[::2], figures[1::2], strict=True)
        rows += [(int(log_epsilon), method, measure, float(value), int(rank)) for measure, value, rank in pairs]
    return pd.DataFrame(rows, columns=["log_epsilon", "method", "measure", "value", "rank"])


def scores() -> pd.DataFrame:
    """The printed overall scores of Table 3."""
    lines = [line.split() for line in _UTILITY.strip().splitlines()]
    rows = [(int(words[0]), words[1], int(words[-1])) for words in lines]
    return pd.DataFrame(rows, columns=["log_epsilon", "method", "score"])


def classes() -> pd.DataFrame:
    """Tables 4 to 9: how many of the 105 pairs have this class of p-value in the original and in the synthetic sets."""
    rows = []
    for line in _CLASSES.strip().splitlines():
        log_epsilon, method, *counts, _ = line.split()
        rows += [(int(log_epsilon), method, i // 4, i % 4, int(count)) for i, count in enumerate(counts)]
    return pd.DataFrame(rows, columns=["log_epsilon", "method", "original", "synthetic", "count"])


def diagonals() -> pd.DataFrame:
    """The printed 'consistency counts' of Tables 4 to 9."""
    lines = [line.split() for line in _CLASSES.strip().splitlines()]
    rows = [(int(words[0]), words[1], int(words[-1])) for words in lines]
    return pd.DataFrame(rows, columns=["log_epsilon", "method", "count"])
