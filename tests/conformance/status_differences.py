"""Where a status is deliberately other than the original's: by rule, with the reason, and what ours says instead.

The original normalises one response's usage (`normalize`) and sums a transcript up (`totals`); ours does both in the
source that reads OpenClaw's logs. A case is named by its place in the data.
"""

REASONS = {
    "names of a provider": "OpenClaw writes its own four names into a transcript; other spellings are a provider's, and "
    "would have to be made disjoint by that provider's rules, not by a list of aliases",
    "numeric strings": "a number that was written as a text is still a number",
    "the reported total": "a total is the sum of its classes: a reported one says nothing about which",
    "nothing is not free": "what was not used, or has no price, has no cost; 0 is what is known to be free",
    "the cache is in the total": "the cost of the example is that of tokens which its total leaves out",
    "a turn is a user's": "a turn is a prompt and everything until the next one; what the model answered are requests",
    "budgets say what they are": "every budget has a unit, a length in seconds, the time it starts anew, and a source",
}

NORMALIZE = {
    1: ("names of a provider", {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}),
    2: ("names of a provider", {"input": 0, "output": 0, "cacheRead": 0, "total": 0}),
    3: ("names of a provider", {"input": 0}),
    5: ("numeric strings", {"input": 9}),
    6: ("names of a provider", {"cacheRead": 0}),
    9: ("the reported total", {"total": 0}),
    11: ("names of a provider", {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}),
}

TOTALS = {
    0: ("nothing is not free", {"cost": None}),
    1: ("names of a provider", {
        "input": 19, "output": 7, "cacheRead": 90, "cacheWrite": 3, "totalTokens": 119, "cost": None,
    }),
}  # fmt: skip

RELATIONS = {
    "totalTokens == input + output (cache not in it)": "the cache is in the total",
    "percent == used / limit * 100": None,
    'hourly/weekly are the inverse of the status line: "5h 28% left" -> used 72, "Week 3% left" -> used 97; limit is '
    "100 percent points, not tokens": None,
}
"""Relation of the issue → the rule by which ours differs; None where it holds."""
