"""How far is a run?"""

from pathlib import Path

from veff import atomic, plan

PAIRS = "null_of_pairs"


class Progress:
    """The alleles x experiments of a run, those of its random alleles among them, and the windows
    of what is scored besides, once that is planned, with the random pairs for it.

    `experiments` are the number of each bundle, by its name; `nulls` is the number of random
    alleles of a class; `also` are the kinds of what is scored besides ('haplotypes'). What an
    earlier run left in `outdir` counts as done, and what came from the store. A chunk counts as an
    equal share of the alleles, so that single steps are rounded.
    """

    def __init__(self, outdir: Path, experiments: dict[str, int], nulls: int, also=()):
        self._prepared = outdir / "prepared/summary.json"
        self._stored = outdir / "parts/stored"
        self._experiments = experiments
        self._nulls = nulls
        left = [("score", path.stem) for path in (outdir / "parts/jobs").glob("*.json")]
        left += [("null", path.stem) for path in (outdir / "parts/nulls").glob("*.json")]
        self._planned = {f"score_{kind}": outdir / "parts" / kind for kind in also}
        for rule, folder in self._planned.items():
            left += [(rule, path.stem) for path in folder.glob("jobs/*.json")]
        pairs = outdir / "parts/haplotypes/pairs"
        left += [(PAIRS, path.stem) for path in pairs.glob("*.json")]
        self._done = {one for one in left if _bundle(one[1]) in experiments}

    def starts(self, rule: str, wildcards: dict[str, str]) -> None:
        """A job starts, and with it what an earlier run did is done again."""
        self._done.discard(_key(rule, wildcards))

    def ends(self, rule: str, wildcards: dict[str, str]) -> None:
        """A job has ended well."""
        if rule in ("score", "null", PAIRS, *self._planned):
            self._done.add(_key(rule, wildcards))

    def counts(self) -> tuple[int, int]:
        """What is done, and all there is, (0, 0) before the alleles are prepared."""
        if not self._prepared.is_file():
            return 0, 0
        summary = atomic.read_json(self._prepared)
        random = self._nulls * (1 + len(summary["classes"])) if summary["chunks"] else 0
        planned = {
            rule: atomic.read_json(path)
            for rule, folder in self._planned.items()
            if (path := folder / "summary.json").is_file()
        }
        if planned.get("score_haplotypes", {}).get("several"):
            planned[PAIRS] = {"windows": plan.A_PAIR * self._nulls, "chunks": 1}
        every = summary["scoreable"] + random + sum(one["windows"] for one in planned.values())
        every *= sum(self._experiments.values())
        left = {bundle: self._left(bundle, summary) for bundle in self._experiments}
        done = sum(
            (summary["scoreable"] - left[bundle]["to_score"]) * n
            for bundle, n in self._experiments.items()
        )
        for rule, name in self._done:
            bundle = _bundle(name)
            if rule == "null":
                share = random
            elif rule == "score":
                share = left[bundle]["to_score"] / max(1, left[bundle]["chunks"])
            elif rule in planned:
                share = planned[rule]["windows"] / max(1, planned[rule]["chunks"])
            else:  # they are planned again
                share = 0
            done += share * self._experiments[bundle]
        return round(done), round(every)

    def _left(self, bundle: str, summary: dict) -> dict:
        """The alleles `to_score`, and their `chunks`, as far as the store was looked into."""
        record = self._stored / f"{bundle}.json"
        if record.is_file():
            return atomic.read_json(record)
        return {"to_score": summary["scoreable"], "chunks": summary["chunks"]}


def _bundle(name: str) -> str:
    return name.rpartition(".")[2]


def _key(rule: str, wildcards: dict[str, str]) -> tuple[str, str]:
    parts = [wildcards[name] for name in ("chunk", "bundle") if name in wildcards]
    return rule, ".".join(parts)


def reached(outdir: Path) -> str:
    """What a run ends with: the largest effects, or else what became of the alleles so far."""
    closing, prepared = outdir / "closing.txt", outdir / "prepared/summary.json"
    if not prepared.is_file():
        return f"Done so far: {outdir}"
    if closing.is_file() and closing.stat().st_mtime >= prepared.stat().st_mtime:
        return closing.read_text()
    summary = atomic.read_json(prepared)
    statuses = ", ".join(f"{n:,} {status}" for status, n in summary["statuses"].items() if n)
    return (
        f"{summary['alleles']:,} alleles: {statuses} "
        f"({outdir / 'alleles.parquet'} says why, allele by allele)"
    )
