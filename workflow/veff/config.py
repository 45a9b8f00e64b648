"""Is the configuration what the schema allows, and do the files that it names exist?"""

import difflib
import json
import math
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import jsonschema

from veff.errors import InputError
from veff.inputs import notations
from veff.names import cut

FILES = ("reference", "models", "contig_aliases")
# With numbers that are some: NaN passes every bound.
Validator = jsonschema.validators.extend(
    jsonschema.Draft202012Validator,
    type_checker=jsonschema.Draft202012Validator.TYPE_CHECKER.redefine(
        "number",
        lambda checker, value: (
            isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        ),
    ),
)


def typed(config: dict) -> None:
    """Give numbers, true, false and null their type, in place.

    Of `--config nulls='{n: 100}' reverse_complement=true` Snakemake makes {'n': '100'} and 'true'.
    """
    for key, value in config.items():
        if isinstance(value, str):
            with suppress(ValueError, RecursionError):
                literal = json.loads(value.lower())
                if not isinstance(literal, str | list | dict):
                    config[key] = value = literal
        if isinstance(value, dict):
            typed(value)
        elif isinstance(value, float) and value.is_integer():
            config[key] = int(value)  # 1e6


def check(config: dict, schema: dict) -> None:
    """Raise `InputError`, one line that names the key and what is allowed, for the first fault.

    `schema` is the JSON schema of the configuration, as a dictionary.
    """
    if None in config:
        raise InputError("config: null: YAML reads this word as no key; what you mean is nulls")
    error = next(Validator(schema).iter_errors(config), None)
    if error is not None:
        raise InputError(_one_line(error))
    for key, text in _texts(config):
        _check_text(key, text)
    _check_folder("outdir", config["outdir"])
    _check_folder("store", config.get("store"))
    variants = config.get("variants") or ""
    if variants and not notations.inline(variants):
        _check_file("variants", variants)
    elif not variants:
        _check_without_variants(config)
    for key in FILES:
        _check_file(key, config.get(key))
    for key, path in config.get("annotations", {}).items():
        _check_file(f"annotations.{key}", path)
    motifs = config.get("motifs", {}).get("set")
    if motifs != "jaspar":
        _check_file("motifs.set", motifs)
    for name, truth in config.get("truth", {}).items():
        _check_file(f"truth.{name}.table", truth["table"])
        if not {"effect", "allelic_ratio", "pvalue", "label"} & truth.keys():
            raise InputError(
                f"config: truth.{name}: names no column to compare scores with; give effect or "
                "allelic_ratio, label, or pvalue"
            )
    if len(config.get("fine_mapping", {})) == 1:
        raise InputError("config: fine_mapping: give both columns, pip and credible_set")
    for key in ("regions", "edits"):
        _check_file(key, config.get(key))
    samples = config.get("samples", "all")
    if isinstance(samples, str) and samples != "all":
        _check_file("samples", samples)
    if config.get("haplotypes") and notations.inline(variants):
        raise InputError(
            "config: haplotypes: alleles that stand in the configuration have no genotypes; give "
            "a VCF or BCF with phased genotypes, or leave haplotypes out"
        )
    background = config.get("background")
    if background and "variants" not in background:
        raise InputError(
            "config: background: names no file; give variants, a VCF or BCF of the person"
        )
    if background:
        _check_file("background.variants", background["variants"])
    nulls = config.get("nulls")
    if isinstance(nulls, dict):
        _check_file("nulls.regions", nulls.get("regions"))
        _check_folder("nulls.dir", nulls.get("dir"))
    elif nulls == "none" and config.get("fdr") is not None:
        raise InputError("config: fdr: there are no p-values with nulls: none; leave fdr out")


def _check_without_variants(config: dict) -> None:
    if not config.get("regions") and not config.get("edits"):
        raise InputError(
            "config: variants: missing; give a VCF, a BCF, a list or alleles themselves, such as "
            "chr1:123:A:G, or regions or edits to score"
        )
    for key in ("haplotypes", "background", "truth", "fine_mapping"):
        if config.get(key):
            raise InputError(f"config: {key}: there are no variants; give some, or leave it out")


def _texts(config: dict, above: str = "") -> Iterator[tuple[str, str]]:
    """Every text of a configuration, under its key with those above."""
    for key, value in config.items():
        if isinstance(value, dict):
            yield from _texts(value, f"{above}{key}.")
        elif isinstance(value, str):
            yield above + key, value


def _check_text(key: str, text: str) -> None:
    if "{" in text or "}" in text:
        raise InputError(
            f"config: {key}: {cut(repr(text), 200)} has a brace, which Snakemake takes for a "
            "wildcard; give a name without one, for instance of a link"
        )
    if not text.isprintable():
        raise InputError(
            f"config: {key}: {cut(repr(text), 200)} has a character that cannot be printed"
        )


def check_image(image: str | None) -> None:
    """Raise `InputError` unless this is a file, or an address that names one image for ever."""
    if image is None:
        raise InputError(
            "config: container: missing; --sdm apptainer needs an image to run jobs in, such as "
            "make image builds (docs/install.md)"
        )
    if "://" not in image:
        _check_file("container", image)
    elif not re.search("@sha256:[0-9a-f]{64}$", image):
        raise InputError(
            f"config: container: {cut(image, 200)} has no digest, and a tag can be moved to "
            "another image; end the address with @sha256: and the image's 64 hexadecimal digits"
        )


def _check_folder(key: str, path: str | None) -> None:
    if path is None:
        return
    there = next((p for p in (Path(path), *Path(path).parents) if os.path.lexists(p)), Path("."))
    if not path or not there.is_dir():
        raise InputError(f"config: {key}: {str(there) if path else path!r} is not a folder")


def _check_file(key: str, path: str | None) -> None:
    if path is not None and not Path(path).is_file():
        raise InputError(
            f"config: {key}: there is no file {cut(repr(path), 200)} (looked from {Path.cwd()}); "
            "give the path of an existing file"
        )


def _one_line(error: jsonschema.ValidationError) -> str:
    if error.validator == "anyOf" and isinstance(error.instance, dict):
        # The fault is in the group of keys, not in having given one.
        error = next(option for option in error.context if option.validator != "const")
    where = ".".join(str(part) for part in error.absolute_path)
    prefix = f"{where}." if where else ""
    known = error.schema.get("properties", {})
    match error.validator:
        case "additionalProperties":
            unknown = sorted(set(error.instance) - set(known))
            close = difflib.get_close_matches(str(unknown[0]), known, 1)
            hint = f"did you mean {close[0]}? " if close else ""
            return (
                f"config: {prefix}{unknown[0]}: unknown key; {hint}allowed here: "
                f"{', '.join(known)}"
            )
        case "required":
            missing = [key for key in error.validator_value if key not in error.instance]
            what = known[missing[0]].get("description", "")
            return f"config: {prefix}{missing[0]}: missing; give {what}"
    said = f"config: {where}: got {cut(repr(error.instance))}; allowed: {_allowed(error.schema)}"
    defaults = {k: one["default"] for k, one in _keys(error.schema).items() if "default" in one}
    for first, default in list(defaults.items())[:1]:
        said += f", such as --config {where}='{{{first}: {json.dumps(default)}}}'"
    return said


def _keys(schema: dict) -> dict:
    """The keys of the object that this schema allows, if it allows one."""
    options = schema.get("anyOf", [schema])
    return next((one.get("properties", {}) for one in options if one.get("type") == "object"), {})


def _allowed(schema: dict) -> str:
    """What a value of this schema may be, in words."""
    if "anyOf" in schema:
        return " or ".join(_allowed(option) for option in schema["anyOf"])
    if "enum" in schema:
        return ", ".join(map(str, schema["enum"]))
    if "const" in schema:
        return str(schema["const"])
    types = schema.get("type", "any")
    words = " or ".join(types) if isinstance(types, list) else types
    bounds = [
        f"{name} {schema[key]}"
        for key, name in (("minimum", "at least"), ("maximum", "at most"))
        if key in schema
    ]
    return " ".join([words, *bounds])
