"""`python tests/cluster/table.py`: puts `faults.json` into docs/cluster.md, as a table."""

import json
from pathlib import Path

FAULTS = Path(__file__).with_name("faults.json")
PAGE = Path(__file__).parents[2] / "docs/cluster.md"
BEGIN, END = "<!-- faults: python tests/cluster/table.py -->\n", "<!-- end -->\n"


def table(rows: list[dict]) -> str:
    lines = ["| what happens | what follows | same result |"]
    lines.append("|---|---|---|")
    for row in rows:
        equal = "yes, to the byte" if row["equal"] else "**no**"
        lines.append(f"| {row['fault']} | {row['follows']} | {equal} |")
    return "\n".join(lines) + "\n"


def page(text: str, rows: list[dict]) -> str:
    before, _, rest = text.partition(BEGIN)
    return before + BEGIN + table(rows) + END + rest.partition(END)[2]


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(), json.loads(FAULTS.read_text())))
