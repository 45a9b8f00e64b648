"""Is the configuration what the schema allows, and do the files that it names exist?"""

import difflib
import json
from contextlib import suppress
from pathlib import Path

import jsonschema

from veff.errors import InputError

FILES = ("variants", "reference", "models", "contig_aliases")


def typed(config: dict) -> None:
    """Give numbers, true, false and null their type, in place.

    Of `--config nulls='{n: 100}' reverse_complement=true` Snakemake makes {'n': '100'} and 'true'.
    """
    for key, value in config.items():
        if isinstance(value, dict):
            typed(value)
        elif isinstance(value, str):
            with suppress(ValueError):
                literal = json.loads(value.lower())
                if not isinstance(literal, str | list | dict):
                    config[key] = literal


def check(config: dict, schema: dict) -> None:
    """Raise `InputError`, one line that names the key and what is allowed, for the first fault.

    `schema` is the JSON schema of the configuration, as a dictionary.
    """
    if None in config:
        raise InputError("config: null: YAML reads this word as no key; what you mean is nulls")
    error = next(jsonschema.Draft202012Validator(schema).iter_errors(config), None)
    if error is not None:
        raise InputError(_one_line(error))
    for key in FILES:
        _check_file(key, config.get(key))
    for key, path in config.get("annotations", {}).items():
        _check_file(f"annotations.{key}", path)
    nulls = config.get("nulls")
    if isinstance(nulls, dict):
        _check_file("nulls.regions", nulls.get("regions"))
    elif nulls == "none" and config.get("fdr") is not None:
        raise InputError("config: fdr: there are no p-values with nulls: none; leave fdr out")


def _check_file(key: str, path: str | None) -> None:
    if path is not None and not Path(path).is_file():
        raise InputError(
            f"config: {key}: there is no file {path!r} (looked from {Path.cwd()}); "
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
    said = f"config: {where}: got {error.instance!r}; allowed: {_allowed(error.schema)}"
    if keys := _keys(error.schema):
        first, default = next((key, one["default"]) for key, one in keys.items())
        said += f", such as --config {where}='{{{first}: {json.dumps(default)}}}'"
    return said


def _keys(schema: dict) -> dict:
    """The keys of the object that this schema allows, if it allows one."""
    options = schema.get("anyOf", [schema])
    return next((one["properties"] for one in options if one.get("type") == "object"), {})


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
