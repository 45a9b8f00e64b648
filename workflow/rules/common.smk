import functools
import os
import sys
import tempfile
import time
import yaml
from dataclasses import asdict
from pathlib import Path

from snakemake.exceptions import WorkflowError
from snakemake.logging import logger
from snakemake.settings.types import DeploymentMethod
from snakemake.utils import validate

from veff import config as settings
from veff import atomic, forecast, job, outdir, plan, progress, resources, slurm, sums
from veff.inputs import identity, notations
from veff.models import acceptance, catv1, experiment, sheet
from veff.scoring.how import How
from veff.errors import InputError

SCHEMA = workflow.source_path("../schemas/config.schema.yaml")

try:
    settings.typed(config)
    settings.check(config, yaml.safe_load(Path(SCHEMA).read_text()))
    validate(config, SCHEMA)  # fills in the defaults
    OUT = config["outdir"].rstrip("/")
    HASHES = Path(OUT, outdir.MARK, "inputs.json")
    # The processes that a run starts, on other nodes perhaps, read this file again: as it was.
    earlier = {} if workflow.is_main_process else identity.recorded(HASHES)
    SHEET = identity.Input.expecting(config["models"], earlier.get(config["models"]))
    EXPERIMENTS = sheet.read(SHEET, config["catv1_revision"])
    if config["ensemble"] == "heldout":
        sheet.check_held_out(config["models"], EXPERIMENTS)
    if workflow.is_main_process:
        outdir.check(Path(OUT))
    if DeploymentMethod.APPTAINER in workflow.deployment_settings.deployment_method:
        settings.check_image(config["container"])
except InputError as error:
    sys.exit(f"error: {error}")  # a WorkflowError would have lines of its own below it


# What --sdm apptainer runs jobs in. It counts for the rules that follow, so for all.
container: config["container"]


if config["precision"] == "bf16":
    logger.warning(
        "config: precision: bf16 is called fast now, and is fp16; write fast"
    )
    config["precision"] = "fast"

# Alleles in place of a file, such as chr1:123:A:G,chr1:456:C:T, become a list; so do none.
LISTED = not Path(config["variants"] or "").is_file()
VARIANTS = f"{OUT}/prepared/variants.txt" if LISTED else ancient(config["variants"])
ALIASES = ancient(config["contig_aliases"] or [])
STARTED = time.time()
PLANS = []  # what was said that the run takes
# By name, a hash of their content; those that this folder already has stay as they are.
BUNDLES = sheet.bundles(
    EXPERIMENTS,
    plan.models_per_job(config["models_per_job"], EXPERIMENTS),
    acceptance.bundles(Path(OUT, "models")),
)
PARTITIONED = len(EXPERIMENTS) > plan.EXPERIMENTS_A_FILE
NULLS = {} if config["nulls"] == "none" else config["nulls"]
TOP = config["top"]["n"]
STORE = config["store"]
MOTIF_FILE = config["motifs"]["set"] if config["motifs"]["set"] != "jaspar" else None
HAPLOTYPES = config["haplotypes"]
OF_HAPLOTYPES = f"{OUT}/parts/haplotypes"
EDITED = config["regions"] or config["edits"]
OF_EDITS = f"{OUT}/parts/edits"
BACKGROUND = config["background"].get("variants")
OF_BACKGROUND = f"{OUT}/parts/background"
# What is scored besides the alleles: rule score_X, its parts in parts/X.
ALSO = [
    kind
    for kind, asked in {
        "haplotypes": HAPLOTYPES,
        "edits": EDITED,
        "background": BACKGROUND,
    }.items()
    if asked
]
SAMPLES = config["samples"]
SAMPLES_FILE = SAMPLES if isinstance(SAMPLES, str) and SAMPLES != "all" else None
ANNOTATIONS = {key: path for key, path in config["annotations"].items() if path}
# Raised when a change of the code changes a score, so that scores are redone.
SCORE_VERSION = 3
# What all jobs that run models are told, and collect, which says it.
HOW = asdict(
    How(
        device=config["device"],
        gpu_model=config["gpu_model"],
        precision=config["precision"],
        engine=config["engine"],
        ensemble=config["ensemble"],
        reverse_complement=config["reverse_complement"],
        version=SCORE_VERSION,
    )
)


if workflow.is_main_process:
    slurm.attend()


def carried_out():
    """Whether jobs are to run, not only to be shown."""
    return workflow.executor_plugin is not None and not workflow.dryrun


@functools.cache
def scratch():
    """A folder for what is only to be shown."""
    return tempfile.TemporaryDirectory(prefix="veff-")


@functools.cache
def identities():
    """The SHA-256 of each file that the user named or the hub gave, when the run began.

    It is first asked for while the graph of jobs is built. Where that is to be carried out, the
    folder of the results is claimed with it.
    """
    if not workflow.is_main_process:
        return identity.recorded(HASHES)
    named = [
        None if LISTED else config["variants"],
        *(config[key] for key in ("reference", "contig_aliases")),
        *(NULLS.get("regions"), *ANNOTATIONS.values(), *peaks_of(EXPERIMENTS).values()),
        *(MOTIF_FILE, SAMPLES_FILE, config["regions"], config["edits"]),
        BACKGROUND,
        *(one["table"] for one in config["truth"].values()),
        *(path for one in EXPERIMENTS for path in one.files),
        *(cached := in_the_hubs_cache()),
    ]
    try:
        if carried_out():
            outdir.claim(Path(OUT))
        sheet_too = {config["models"]: SHEET.sha256}
        found = identity.now(filter(None, named), HASHES, carried_out(), sheet_too)
        if carried_out():
            catv1.mend(cached.values(), found)
        return found
    except InputError as error:
        sys.exit(f"error: {error}")  # an exception would come out with a traceback


def claimed(wildcards):
    """No file; an input of a rule that may come first, so that all starts with `identities`."""
    identities()
    return []


def content_of(rule, *given):
    """A note of what the user's files hold that a rule reads, as an input by which it runs again.

    It is rewritten when they hold something else, and only then. So the times of the files, which
    are `ancient` inputs, decide nothing, nor do Snakemake's records, which stay in the folder that
    a run was started from. `given` are paths, functions that list some, and alleles themselves.
    """

    def of(wildcards):
        # In a folder of its own: what stands in a folder Snakemake looks up once, and there are
        # notes that it asks for later.
        folder = HASHES.with_name("given") / rule.format(**dict(wildcards.items()))
        note = folder / "content.json"
        hashes = identities()
        if not workflow.is_main_process:
            return str(note)
        listed = [one(wildcards) if callable(one) else [one] for one in given]
        content = [[hashes.get(path, path) for path in paths] for paths in listed]
        return str(
            identity.noted(note, content, None if carried_out() else scratch().name)
        )

    return of


def as_planned(kind):
    """A note, as `content_of` makes it, of what is to be scored besides the alleles.

    Models that are added later have it planned again; what is planned as before is not scored again.
    """

    def of(wildcards):
        note = HASHES.with_name("given") / f"score_{kind}/content.json"
        planned = getattr(checkpoints, f"plan_{kind}").get().output.virtual
        if not workflow.is_main_process:
            return str(note)
        elsewhere = None if carried_out() else scratch().name
        return str(identity.noted(note, sums.noted(planned), elsewhere))

    return of


def sha256(*paths):
    """What the jobs of a rule hold the bytes against that they read of these files."""
    return lambda wildcards: {path: identities()[path] for path in filter(None, paths)}


wildcard_constraints:
    chunk=r"\d+",
    bundle="[0-9a-f]{12}",


def asks(need, **more):
    """What a rule's jobs ask a scheduler for: twice as much memory and time at the second attempt.

    `need` is a `resources.Need`, or a function of wildcards and input that returns one.
    """

    def of(wildcards, input):
        return need(wildcards, input) if callable(need) else need

    return {
        "mem_mb": lambda wildcards, input, attempt: attempt
        * of(wildcards, input).mem_mb,
        "runtime": lambda wildcards, input, attempt: attempt
        * of(wildcards, input).minutes,
        "cpus_per_task": lambda wildcards, threads: threads,
        "attempt": lambda wildcards, attempt: attempt,  # veff.job asks which one it is
    } | more


def gpus(wildcards=None):
    """How many GPUs a job that runs models asks for: it is promised them, and stops without.

    Of a `device: auto`, what counts is the machine where the run started, or, for jobs that run
    elsewhere, their scheduler.
    """
    # What an executor is for a dry run Snakemake does not say; only clusters are given jobs.
    dry = workflow.dryrun and workflow.resource_settings.nodes
    elsewhere = dry or workflow.remote_exec or workflow.non_local_exec
    return plan.gpus_a_job(config["device"], config["gpu_model"], bool(elsewhere))


# What the jobs that run models ask for, besides what all do. Nothing where they need no GPU: for
# Kubernetes none is something else than zero.
GPU = {}
if config["device"] != "cpu":
    GPU["gpu"] = gpus
if config["gpu_model"]:
    GPU["gpu_model"] = config["gpu_model"]


def known(key, before=0):
    """What the summary of the prepared alleles has under this key, or what it is before."""
    summary = Path(OUT, "prepared/summary.json")
    return atomic.read_json(summary)[key] if summary.is_file() else before


def in_a_chunk():
    """At most so many alleles are in a chunk, 0 before they are prepared."""
    return -(-known("alleles") // max(1, known("chunks")))


def to_predict(alleles):
    """What a job needs that predicts so many alleles (a function) with the models of a bundle."""

    def of(wildcards, input):
        models = sum(len(one.checkpoints) for one in BUNDLES[wildcards.bundle])
        # Both strands take the time of twice the models.
        models *= 1 + config["reverse_complement"]
        return resources.models(alleles(), models, on_gpu=bool(gpus()))

    return of


def to_go_through(tables):
    """What a job needs that goes through tables of all alleles, and of so many experiments."""
    return lambda wildcards, input: resources.rows(known("alleles"), tables)


def to_read(name):
    """What a job needs that reads this file of the configuration, which is text."""
    if LISTED and name == "variants":
        return resources.LIGHT
    return resources.text(os.path.getsize(config[name]) / 1e6)


def looked_up():
    """What is known of each bundle's scores in the store, by its name, once all were looked up.

    Without a store there is nothing to know. No GPU is used before.
    """
    return {
        bundle: atomic.read_json(checkpoints.stored.get(bundle=bundle).output.record)
        for bundle in (BUNDLES if STORE else ())
    }


def stored(wildcards):
    """The records of what the store has: all are made at once."""
    return [
        f"{OUT}/parts/stored/{bundle}.json" for bundle in (BUNDLES if STORE else ())
    ]


def parts(kind):
    """The parts of this kind: what comes from the store, and those of all scoring jobs."""

    def of(wildcards):
        prepared = atomic.read_json(checkpoints.prepare.get().output.summary)
        found = looked_up()
        if len(PLANS) == 1:  # the alleles were counted while the run runs
            say_plan()
        chunks = {
            bundle: found[bundle]["chunks"] if found else prepared["chunks"]
            for bundle in BUNDLES
        }
        had = [
            f"{OUT}/parts/{kind}/stored.{bundle}.parquet"
            for bundle in found
            if kind != "jobs" and found[bundle]["found"]
        ]
        return [*had, *parts_of(f"{OUT}/parts", kind, chunks)]

    return of


def parts_of(folder, kind, chunks):
    """The parts of this kind in a folder: for each bundle, its number of chunks in order."""
    return [
        f"{folder}/{kind}/{chunk}.{bundle}.{'json' if kind == 'jobs' else 'parquet'}"
        for bundle, n in chunks.items()
        for chunk in range(n)
    ]


def parts_besides(what, kind):
    """As `parts`, of the jobs that score this besides the alleles: none where nobody asked for it."""

    def of(wildcards):
        if what not in ALSO:
            return []
        plan_of_it = getattr(checkpoints, f"plan_{what}")
        planned = atomic.read_json(plan_of_it.get().output.summary)
        say_once(planned["words"])
        chunks = dict.fromkeys(BUNDLES, planned["chunks"])
        return parts_of(f"{OUT}/parts/{what}", kind, chunks)

    return of


def setups(wildcards):
    """What is set up, for the bundles that have something to score."""
    found = looked_up()
    return [
        f"{OUT}/autotune/{bundle}.json"
        for bundle in BUNDLES
        if not found or found[bundle]["chunks"] or NULLS or ALSO
    ]


def random_snvs():
    """How many random SNVs each model scores (known once all rules are)."""
    n = NULLS.get("n", 0)
    return plan.random_snvs(cut().gpu) if n == "auto" else n


def random_classes(wildcards=None):
    """The classes of the prepared alleles, SNVs in any case, of each of which it scores as many."""
    return ["snv", *known("classes", [])]


def random_alleles():
    """How many random alleles each model scores."""
    return random_snvs() * len(random_classes())


def of_nulls(peaks, classes):
    """What the rules are told of the nulls of these classes, with the peaks of experiments; {} where
    there are none."""
    more = {"n": random_snvs(), "peaks": peaks, "classes": classes}
    return NULLS and NULLS | more


def nulls(extension):
    """The nulls of all bundles, or what was noted about making them."""

    def of(wildcards):
        prepared = atomic.read_json(checkpoints.prepare.get().output.summary)
        looked_up()
        wanted = NULLS and prepared["chunks"]
        return [
            f"{OUT}/parts/nulls/{bundle}.{extension}"
            for bundle in (BUNDLES if wanted else ())
        ]

    return of


def nulls_of_pairs(extension):
    """As `nulls`, of pairs of SNVs: none where no haplotype has several alleles."""

    def of(wildcards):
        if not (HAPLOTYPES and NULLS):
            return []
        planned = checkpoints.plan_haplotypes.get().output.summary
        wanted = atomic.read_json(planned)["several"]
        return [
            f"{OF_HAPLOTYPES}/pairs/{bundle}.{extension}"
            for bundle in (BUNDLES if wanted else ())
        ]

    return of


def cut():
    """What the alleles are divided into chunks for (known once all rules are)."""
    asked = rules.score.rule.resources.get("gpu")  # a profile may have changed it
    changed = asked is not None and not asked.is_evaluable()
    gpu = bool(asked.value if changed else gpus())
    where = config["device"], config["gpu_model"]
    return plan.cut(f"{OUT}/prepared/summary.json", BUNDLES, *where, gpu)


def say(words, known=None):
    """Say this to who started the run; `known`, at its start, shows how far it is."""
    logger.info(words, extra={"veff": known})


@functools.cache
def say_once(words):
    """Say this to who started the run, however often it is asked for."""
    say(words)


def say_plan(known=None):
    """Say what the run takes, if that was not said."""
    words = plan_in_words()
    if words not in PLANS:
        say(words, known)
    PLANS.append(words)


def to_do():
    """What there is to score, and how much of it is done."""
    experiments = {bundle: len(BUNDLES[bundle]) for bundle in BUNDLES}
    return progress.Progress(Path(OUT), experiments, random_snvs(), ALSO)


def besides():
    """What is scored besides the alleles, as far as it is planned, and how much of it is done."""
    found = []
    for kind in ALSO:
        folder = Path(OUT, "parts", kind)
        if (folder / "summary.json").is_file():
            summary = atomic.read_json(folder / "summary.json")
            done = [path.stem.split(".")[1] for path in folder.glob("jobs/*.json")]
            found.append(
                forecast.Planned(
                    kind,
                    windows=summary["windows"],
                    jobs=summary["chunks"] * len(BUNDLES),
                    done=sum(bundle in BUNDLES for bundle in done),
                )
            )
            if NULLS and summary.get("several"):
                done = [path.stem for path in folder.glob("pairs/*.json")]
                found.append(
                    forecast.Planned(
                        "pairs of random SNVs",
                        windows=plan.A_PAIR * random_snvs(),
                        jobs=len(BUNDLES),
                        done=sum(bundle in BUNDLES for bundle in done),
                    )
                )
    return tuple(found)


def in_the_store():
    """What was found in the store, None before all bundles were looked up."""
    records = {
        bundle: Path(OUT, "parts/stored", f"{bundle}.json")
        for bundle in (BUNDLES if STORE else ())
    }
    if not records or not all(path.is_file() for path in records.values()):
        return None
    found = {bundle: atomic.read_json(path) for bundle, path in records.items()}
    models = {
        bundle: sum(len(one.checkpoints) for one in BUNDLES[bundle]) for bundle in found
    }
    return forecast.Stored(
        scores=sum(one["found"] * one["experiments"] for one in found.values()),
        allele_models=sum(one["found"] * models[key] for key, one in found.items()),
        jobs=sum(one["chunks"] for one in found.values()),
    )


def plan_in_words():
    """What the run will take, as far as it is known."""
    summary = Path(OUT, "prepared/summary.json")
    jobs = Path(OUT, "parts/jobs").glob("*.json")
    nulls = Path(OUT, "parts/nulls").glob("*.json")
    judged = [one for path in nulls for one in BUNDLES.get(path.stem, ())]
    return forecast.Forecast(
        cut(),
        config["chunk_size"],
        experiments=len(EXPERIMENTS),
        models=sum(len(one.checkpoints) for one in EXPERIMENTS),
        bundles=len(BUNDLES),
        strands=1 + config["reverse_complement"],
        nulls=random_snvs(),
        text=not PARTITIONED,
        done=sum(path.name.split(".")[1] in BUNDLES for path in jobs),
        judged=sum(len(one.checkpoints) for one in judged),
        top=0 if Path(OUT, "parts/top.json").is_file() else TOP,
        shuffles=config["top"]["shuffles"],
        prepared=atomic.read_json(summary) if summary.is_file() else None,
        store=in_the_store(),
        planned=besides(),
    ).words()


def peaks_of(experiments):
    """The peaks of those experiments that have any, by name."""
    return {one.name: one.peaks for one in experiments if one.peaks}


def peaks_of_bundle(wildcards):
    """The files of peaks of a bundle's experiments."""
    return list(peaks_of(BUNDLES[wildcards.bundle]).values())


def checkpoint_files(wildcards):
    """The checkpoints of a bundle that are the user's own files."""
    return [path for one in BUNDLES[wildcards.bundle] for path in one.files]


def from_hub(bundle):
    """The names of a bundle's checkpoints in CATv1's repository."""
    return [name for one in BUNDLES[bundle] for name in one.from_hub]


def in_the_hubs_cache():
    """The checkpoints from CATv1 that earlier jobs inspected and that are still there, by path."""
    known = [Path(OUT, "models", bundle, "models.json") for bundle in BUNDLES]
    read = [one for path in known if path.is_file() for one in experiment.read(path)]
    return {one.path: one for one in read if one.file and Path(one.path).is_file()}


def downloads(wildcards):
    """What is known of a bundle's downloads, where it has any."""
    record = f"{OUT}/models/{wildcards.bundle}/downloads.json"
    return record if from_hub(wildcards.bundle) else []


def table(path):
    """A Parquet table of all experiments: a file, or a folder with a file for each."""
    return directory(path) if PARTITIONED else path


def tsv_of_scores(wildcards):
    """The scores as text, where they are not too many for it."""
    prepared = atomic.read_json(checkpoints.prepare.get().output.summary)
    rows = prepared["alleles"] * len(EXPERIMENTS)
    small = rows <= plan.TSV_ROWS and not PARTITIONED
    return rules.scores_tsv.output if small else []
