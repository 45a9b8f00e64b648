from pathlib import Path

import pytest
import yaml

from veff import config
from veff.errors import InputError

ROOT = Path(__file__).parents[2]
SCHEMA = yaml.safe_load((ROOT / "workflow/schemas/config.schema.yaml").read_text())
NULLS = SCHEMA["properties"]["nulls"]["anyOf"][1]
GROUPS = (SCHEMA["properties"]["autotune"]["properties"], NULLS["properties"])
GROUPS += tuple(SCHEMA["properties"][key]["properties"] for key in ("top", "annotations"))


@pytest.fixture
def given(tmp_path):
    """A valid configuration."""
    files = {key: str(tmp_path / key) for key in ("variants", "reference", "models")}
    for path in files.values():
        Path(path).touch()
    return {**files, "outdir": "results"}


def test_a_valid_configuration_passes(given):
    config.check(given, SCHEMA)


def test_regions_or_edits_need_no_variants(given):
    del given["variants"]
    config.check(given | {"regions": given["reference"]}, SCHEMA)
    config.check(given | {"edits": given["reference"]}, SCHEMA)


def test_the_demos_configuration_passes(monkeypatch):
    monkeypatch.chdir(ROOT)
    config.check(yaml.safe_load((ROOT / "config/demo.yaml").read_text()), SCHEMA)


def test_the_users_configuration_sets_nothing_that_decides_a_result():
    assert set(yaml.safe_load((ROOT / "config/config.yaml").read_text())) == {"outdir"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"chunksize": 5}, "config: chunksize: unknown key; did you mean chunk_size? allowed"),
        (
            {"autotune": {"strct": True}},
            "config: autotune.strct: unknown key; did you mean strict? allowed here:",
        ),
        ({"chunk_size": "five"}, "config: chunk_size: got 'five'; allowed: auto or integer"),
        ({"chunk_size": 0}, "config: chunk_size: got 0; allowed: auto or integer at least 1"),
        ({"device": "gpu"}, "config: device: got 'gpu'; allowed: auto, cpu, cuda"),
        ({"max_ref_mismatch": 2}, "config: max_ref_mismatch: got 2; allowed: number at least 0"),
        ({"variants": "none.vcf"}, "config: variants: there is no file 'none.vcf'"),
        ({"nulls": {"m": 5}}, "config: nulls.m: unknown key; allowed here: n, seed, scheme"),
        ({"nulls": {"n": 0}}, "config: nulls.n: got 0; allowed: auto or integer at least 1"),
        (
            {"nulls": "no"},
            "config: nulls: got 'no'; allowed: none or object, such as --config nulls='{",
        ),
        ({"top": 20}, "config: top: got 20; allowed: object, such as --config top='{n: 20}'"),
        ({"varaints": "a.vcf"}, "config: varaints: unknown key; did you mean variants? allowed"),
        ({"nulls": {"regions": "no.bed"}}, "config: nulls.regions: there is no file 'no.bed'"),
        ({"annotations": {"genes": "no.gtf"}}, "config: annotations.genes: there is no file"),
        (
            {"annotations": {"gene": "x"}},
            "config: annotations.gene: unknown key; did you mean genes? allowed here: genes",
        ),
        ({None: {"n": 5}}, "config: null: YAML reads this word as no key; what you mean is nulls"),
        ({"motifs": {"set": "no.meme"}}, "config: motifs.set: there is no file"),
        ({"nulls": "none", "fdr": 0.1}, "config: fdr: there are no p-values with nulls: none"),
        ({"fdr": 0}, "config: fdr: got 0; allowed: number or null"),
        ({"regions": "no.bed"}, "config: regions: there is no file 'no.bed'"),
        ({"samples": "no.txt"}, "config: samples: there is no file 'no.txt'"),
        (
            {"haplotypes": True, "variants": "chr1:123:A:G"},
            "config: haplotypes: alleles that stand in the configuration have no genotypes; give",
        ),
        ({"background": {"variants": "no.vcf"}}, "config: background.variants: there is no file"),
        (
            {"background": {"sample": "NA12878"}},
            "config: background: names no file; give variants",
        ),
        ({"background": "me.vcf"}, "config: background: got 'me.vcf'; allowed: object"),
        ({"variants": None}, "config: variants: missing; give a VCF, a BCF, a list or alleles"),
        (
            {"variants": None, "regions": __file__, "truth": {"t": {"table": __file__}}},
            "config: truth: there are no variants; give some, or leave it out",
        ),
        (
            {"variants": None, "edits": __file__, "haplotypes": True},
            "config: haplotypes: there are no variants; give some, or leave it out",
        ),
        ({"variants": 3}, "config: variants: got 3; allowed: string or null"),
        ({"truth": "t.tsv"}, "config: truth: got 't.tsv'; allowed: object"),
        ({"fine_mapping": "pip"}, "config: fine_mapping: got 'pip'; allowed: object"),
        ({"fine_mapping": {"pip": "p"}}, "config: fine_mapping: give both columns, pip and cred"),
    ],
)
def test_a_fault_is_one_line_with_the_key_and_what_is_allowed(given, change, message):
    with pytest.raises(InputError) as error:
        config.check(given | change, SCHEMA)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_what_the_command_line_gives_as_text_gets_its_type(given):
    """As Snakemake reads --config nulls='{n: 5, …}' reverse_complement=true fdr=null …"""
    given |= {"nulls": {"n": "5", "dir": "null", "scheme": "uniform"}, "fdr": "null"}
    given |= {"autotune": {"strict": "True", "max_age_days": "1.5"}, "reverse_complement": "true"}
    config.typed(given)
    config.check(given, SCHEMA)
    assert given["nulls"] == {"n": 5, "dir": None, "scheme": "uniform"}
    assert (given["reverse_complement"], given["fdr"]) == (True, None)
    assert given["autotune"] == {"strict": True, "max_age_days": 1.5}


def test_a_missing_key_says_what_it_is(given):
    del given["reference"]
    with pytest.raises(InputError, match=r"config: reference: missing; give the reference genome"):
        config.check(given, SCHEMA)


@pytest.mark.parametrize(
    ("image", "message"),
    [
        (None, "config: container: missing; --sdm apptainer needs an image"),
        ("no.sif", "config: container: there is no file 'no.sif'"),
        (
            "docker://host/veff:0.1.0-gpu",
            "config: container: docker://host/veff:0.1.0-gpu has no",
        ),
        (f"docker://host/veff@sha256:{'0' * 63}", "config: container: .* has no digest"),
    ],
)
def test_an_image_that_is_not_one_for_ever_is_refused(image, message):
    with pytest.raises(InputError, match=message):
        config.check_image(image)


def test_an_image_is_a_file_or_an_address_with_its_digest(given):
    config.check_image(given["reference"])
    config.check_image(f"docker://host/veff:0.1.0-gpu@sha256:{'0' * 64}")


def test_every_key_is_documented_in_the_config_readme():
    text = (ROOT / "config/README.md").read_text()
    keys = [*SCHEMA["properties"], *(key for group in GROUPS for key in group)]
    assert [key for key in keys if f"`{key}`" not in text] == []


def test_every_key_has_a_description():
    described = [item for group in (SCHEMA["properties"], *GROUPS) for item in group.items()]
    assert [key for key, value in described if not value.get("description")] == []
