"""Files in which a bundle describes itself: each is read, and found valid, by the program that it is for."""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import absl.logging
import jsonschema
import mlcroissant
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from frictionless import Package
from frictionless.exception import FrictionlessException
from ruamel.yaml import YAML
from securesystemslib.dsse import Envelope
from securesystemslib.exceptions import VerificationError
from securesystemslib.signer import SSlibKey

from tasks.publishing import bundle
from tasks.publishing.descriptions import describing_among, describing_files, written
from tasks.publishing.publication import publish
from tasks.publishing.statement import STATEMENT
from tasks.verify.bundle import verify_bundle
from tasks.verify.recompute import verify_again
from tests.tasks.publishing.making import GIVEN, POLL, WORDED, Made, a_release, make, sign_again, some_counts
from tests.toys import added

# mlcroissant's logging would keep what pytest captures in, and close it where Prefect sets up logging anew.
absl.logging.get_absl_handler().python_handler.setStream(sys.__stderr__)

PAIRS = {"decomposition": "pairs", "sets": {"count": 2, "budget": "shared"}}


@pytest.fixture(scope="module")
def worded(tmp_path_factory) -> Made:
    """A release with everything that can be said in words, and CSV. Not to be changed."""
    made = make(
        tmp_path_factory.mktemp("worded") / "home",
        a_release(WORDED, PAIRS, why="The board allowed it"),
        some_counts(WORDED, 1003),
    )
    publish(*made.arguments, seeds="steps-seeds/1")
    return made


@pytest.fixture(scope="module")
def silent(tmp_path_factory) -> Made:
    """One without a title, a publisher, a contact or a licence, in ρ, Parquet alone. Not to be changed."""
    asked = a_release(POLL, PAIRS, rho="0.1", delta="1e-9", formats=("parquet",))
    made = make(tmp_path_factory.mktemp("silent") / "home", asked, some_counts(POLL, 1003))
    publish(*made.arguments, seeds="steps-seeds/1")
    return made


def folder_of(made: Made) -> Path:
    return made.home.public / made.release.name


def plain(path: Path) -> Any:
    return YAML(typ="safe", pure=True).load(path.read_text(encoding="utf-8"))


@pytest.fixture(params=["worded", "silent"])
def folder(request) -> Path:
    return folder_of(request.getfixturevalue(request.param))


@pytest.mark.whole
def test_every_describing_file_is_there_and_named_in_the_signed_manifest(folder):
    manifest = json.loads((folder / bundle.MANIFEST).read_bytes())
    assert describing_files() == {
        "README.txt",
        "analysis.R",
        "codebook.html",
        "datapackage.json",
        "croissant.json",
        "opendp_deployment.yaml",
        "CITATION.cff",
    }
    assert describing_among(manifest["files"]) == describing_files()
    assert {name for name in describing_files() if not (folder / name).is_file()} == set()


def test_words_of_a_spec_reach_every_file_and_silence_none(worded, silent):
    words = {
        "title": (WORDED.title, describing_files() - {"analysis.R"}),
        "publisher": (WORDED.publisher, describing_files() - {"analysis.R"}),
        "contact": (WORDED.contact, describing_files() - {"analysis.R", "opendp_deployment.yaml"}),
        "licence": (WORDED.licence, describing_files() - {"analysis.R", "opendp_deployment.yaml"}),
        "reason": ("The board allowed it", {"codebook.html", "opendp_deployment.yaml"}),
        "label": ("went to the polls", {"codebook.html"}),
        "rule": ("who voted said how", {"codebook.html"}),
        "derived": ("turnout", {"codebook.html", "datapackage.json", "croissant.json", "opendp_deployment.yaml"}),
    }
    for text, names in words.values():
        for name in names:
            said = (folder_of(worded) / name).read_text(encoding="utf-8").replace("&amp;", "&")
            assert text in said, (text, name)
    for name in describing_files():
        said = (folder_of(silent) / name).read_text(encoding="utf-8")
        assert "None" not in said.replace("None: no row", "") and "licen" not in said.lower(), name


def test_the_readme_has_ten_lines(folder):
    text = (folder / "README.txt").read_text(encoding="utf-8")
    assert text.count("\n") == 10 and text.endswith("\n") and "\n\n" not in text


@pytest.mark.whole
def test_the_data_package_and_the_rows_are_valid_to_frictionless(folder):
    report = Package(str(folder / "datapackage.json")).validate()
    assert report.valid, report.flatten(["name", "type", "message"])
    assert [task.name for task in report.tasks][:2] in (
        ["synthetic-1-csv", "synthetic-2-csv"],
        ["synthetic-1-parquet", "synthetic-2-parquet"],
    )


@pytest.mark.parametrize("lie", ["label", "bound", "hash"])
@pytest.mark.whole
def test_frictionless_would_notice_rows_that_the_data_package_does_not_allow(worded, tmp_path, lie):
    copy = tmp_path / "copy"
    shutil.copytree(folder_of(worded), copy)
    document = json.loads((copy / "datapackage.json").read_bytes())
    resource = document["resources"][0]
    fields = {field["name"]: field for field in resource["schema"]["fields"]}
    if lie == "label":
        fields["voted"]["constraints"]["enum"] = ["no"]
    elif lie == "bound":
        fields["age"]["constraints"]["maximum"] = 18
    else:
        resource["hash"] = "sha256:" + "0" * 64
    (copy / "datapackage.json").write_text(json.dumps(document))
    assert not Package(str(copy / "datapackage.json")).validate().valid


def test_a_data_package_that_is_none_is_refused_by_frictionless(worded):
    document = json.loads((folder_of(worded) / "datapackage.json").read_bytes())
    document["resources"][0]["schema"]["fields"][0]["type"] = "label"
    with pytest.raises(FrictionlessException):
        Package(document)


def test_croissant_is_valid_to_mlcroissant(folder):
    issues = mlcroissant.Dataset(str(folder / "croissant.json")).metadata.ctx.issues
    assert issues.errors == set()
    assert {text for text in issues.warnings if "license" not in text and "creator" not in text} == set()


def test_mlcroissant_gives_the_rows(folder):
    """But for times of day, which it can describe and not read."""
    document = json.loads((folder / "croissant.json").read_bytes())
    for records in document["recordSet"]:
        records["field"] = [field for field in records["field"] if field["dataType"] != "sc:Time"]
    place = {path.name: str(path) for path in folder.glob("synthetic-*.parquet")}
    found = mlcroissant.Dataset(document, mapping=place).records("synthetic-2")
    table = pq.read_table(folder / "synthetic-2.parquet")
    kept = [name for name in table.column_names if not pa.types.is_time(table.schema.field(name).type)]
    for row, record in zip(found, table.select(kept).slice(0, 50).to_pylist(), strict=False):
        values = [text.decode() if isinstance(text, bytes) else text for text in row.values()]
        assert values == [pd.Timestamp(value) if hasattr(value, "isoformat") else value for value in record.values()]


def test_mlcroissant_would_notice_a_file_that_is_not_there(worded):
    document = json.loads((folder_of(worded) / "croissant.json").read_bytes())
    document["recordSet"][0]["field"][0]["source"]["fileObject"]["@id"] = "synthetic-9.parquet"
    with pytest.raises(mlcroissant.ValidationError):
        mlcroissant.Dataset(document)


def test_croissant_tells_the_privacy_facts(worded, silent):
    for made, expected in ((worded, {"epsilon": 1.0}), (silent, {"rho": 0.1, "delta": 1e-9})):
        document = json.loads((folder_of(made) / "croissant.json").read_bytes())
        facts = {fact["name"]: fact["value"] for fact in document["additionalProperty"]}
        assert expected.items() <= facts.items() and facts["privacy unit"] == "person"
        assert bundle.read_manifest((folder_of(made) / bundle.MANIFEST).read_bytes()).guarantee.sentence in str(document)


# The registry's fields by section, as its schema has them in 2026: of each the tier, and what it may hold.
_TEXT, _NUMBER = {"type": "string", "minLength": 1}, {"type": "number"}
CARD = {
    "basic": {
        "name": _TEXT,
        "data_curators": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "required": ["data_curator_name", "data_curator_type"],
                "additionalProperties": False,
                "properties": {"data_curator_name": _TEXT, "data_curator_type": _TEXT},
            },
        },
        "description": _TEXT,
        "intended_use": _TEXT,
        "data_product_type": {"enum": ["Synthetic data"]},
        "data_product_region": _TEXT,
        "publication_date": {"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"},
    },
    "dp_variant": {
        "variant_name": {"enum": ["Pure DP", "Approximate DP", "Zero-concentrated DP", "Renyi DP", "Custom"]},
        "data_domain": _TEXT,
        "unprotected_quantities": _TEXT,
    },
    "privacy_loss": {
        "privacy_unit": _TEXT,
        "privacy_unit_details": _TEXT,
        "number_of_privacy_units": {"type": "integer", "minimum": 1},
        "privacy_parameters": {
            "type": "object",
            "minProperties": 1,
            "additionalProperties": False,
            "properties": {"epsilon": _NUMBER, "delta": _NUMBER, "rho": _NUMBER},
        },
        "privacy_parameters_details": _TEXT,
    },
    "deployment_model": {
        "model_name": {"enum": ["Local", "Central", "Shuffle", "Federated", "Varies"]},
        "model_name_details": _TEXT,
        "trust_assumptions": _TEXT,
        "actors": _TEXT,
        "release_type": {"enum": ["One release", "Many releases"]},
        "release_type_details": _TEXT,
        "data_source_type": {"enum": ["Static", "Dynamic"]},
        "data_source_type_details": _TEXT,
        "access_type": {"enum": ["Interactive", "Non-interactive"]},
        "access_type_details": _TEXT,
    },
    "implementation": {
        "preprocessing_and_hyperparameter_tuning": _TEXT,
        "mechanisms": _TEXT,
        "composition": _TEXT,
        "post_processing": _TEXT,
        "justification": _TEXT,
        "utility": _TEXT,
        "additional_information": _TEXT,
    },
    "administrative": {
        "status": {"enum": ["Draft"]},
        "registry_authors": {"type": "array", "minItems": 1, "items": _TEXT},
        "tier": {"enum": [3]},
    },
}


def whole(properties: dict[str, Any]) -> dict[str, Any]:
    """An object with all of these, and no other."""
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


SECTIONS = {name: whole(fields) for name, fields in CARD.items()}
CARD_SCHEMA = whole({"url_slug": _TEXT, "deployment": whole(SECTIONS)})


def test_the_card_has_every_field_of_the_registry_up_to_tier_three(folder):
    jsonschema.validate(plain(folder / "opendp_deployment.yaml"), CARD_SCHEMA)


def test_the_card_names_the_variant_and_its_figures(worded, silent):
    for made, variant, figures in (
        (worded, "Pure DP", {"epsilon"}),
        (silent, "Zero-concentrated DP", {"epsilon", "rho", "delta"}),
    ):
        card = plain(folder_of(made) / "opendp_deployment.yaml")["deployment"]
        assert card["dp_variant"]["variant_name"] == variant
        assert card["privacy_loss"]["privacy_parameters"].keys() == figures


def test_what_the_card_does_not_know_is_said_in_the_spec_or_named(worded, silent):
    card = plain(folder_of(worded) / "opendp_deployment.yaml")["deployment"]
    assert card["basic"]["data_curators"] == [{"data_curator_name": WORDED.publisher, "data_curator_type": "Government"}]
    assert card["basic"]["data_product_region"] == "Atlantis" and "not stated" not in str(card).lower()
    card = plain(folder_of(silent) / "opendp_deployment.yaml")["deployment"]
    told = "to be said before this card is handed in: publisher, registry.curator_type, registry.region."
    assert told in card["implementation"]["additional_information"]
    assert card["basic"]["data_curators"] == [{"data_curator_name": "not stated", "data_curator_type": "not stated"}]


def test_a_card_without_a_field_is_noticed(worded):
    card = plain(folder_of(worded) / "opendp_deployment.yaml")
    del card["deployment"]["implementation"]["justification"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(card, CARD_SCHEMA)


_ENTITY = {"type": "object", "required": ["name"], "properties": {"name": _TEXT, "email": _TEXT, "website": _TEXT}}
CITATION = {  # what the Citation File Format 1.2.0 says of the keys that are used
    "type": "object",
    "required": ["cff-version", "message", "title", "authors"],
    "additionalProperties": False,
    "properties": {
        "cff-version": {"const": "1.2.0"},
        "message": _TEXT,
        "type": {"enum": ["dataset", "software"]},
        "title": _TEXT,
        "authors": {"type": "array", "minItems": 1, "items": _ENTITY | {"additionalProperties": False}},
        "contact": {"type": "array", "minItems": 1, "items": _ENTITY | {"additionalProperties": False}},
        "abstract": _TEXT,
        "version": _TEXT,
        "date-released": {"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"},
        "keywords": {"type": "array", "minItems": 1, "uniqueItems": True, "items": _TEXT},
        "license": _TEXT,
        "license-url": {"type": "string", "pattern": "^https?://"},
    },
}


def test_the_citation_has_the_form_of_a_citation_file(folder):
    jsonschema.validate(plain(folder / "CITATION.cff"), CITATION)


def test_licence_and_contact_of_the_citation_are_those_of_the_spec(worded, silent):
    said = plain(folder_of(worded) / "CITATION.cff")
    assert said["license"] == "CC-BY-4.0" and said["contact"] == [{"name": WORDED.publisher, "email": WORDED.contact}]
    assert not {"license", "license-url", "contact"} & plain(folder_of(silent) / "CITATION.cff").keys()


def test_a_licence_may_be_an_address_and_a_contact_a_page(worded, tmp_path):
    from tasks.publishing.description import describe
    from tasks.publishing.page import view_of

    folder = folder_of(worded)
    manifest = bundle.read_manifest((folder / bundle.MANIFEST).read_bytes())
    tables = {path.stem: path.read_bytes() for path in folder.glob("*.parquet")}
    domain = WORDED.model_copy(update={"licence": "https://town.example/terms", "contact": "https://town.example/ask"})
    files = {name: facts for name, facts in manifest.files.items() if name not in describing_files()}
    files.pop(bundle.PAGE)
    made = written(describe(manifest, files, worded.plan, domain, view_of(worded.plan, domain, tables)))
    for name, content in made.items():
        (tmp_path / name).write_bytes(content)
    said = plain(tmp_path / "CITATION.cff")
    jsonschema.validate(said, CITATION)
    assert (said["license-url"], said["contact"][0]["website"]) == ("https://town.example/terms", "https://town.example/ask")
    package = json.loads(made["datapackage.json"])
    assert package["licenses"] == [{"path": "https://town.example/terms"}]
    assert Package(package, basepath=str(folder)).validate().valid
    assert json.loads(made["croissant.json"])["license"] == "https://town.example/terms"


def envelope(folder: Path) -> Envelope:
    return Envelope.from_dict(json.loads((folder / STATEMENT).read_bytes()))


def key_of(folder: Path) -> SSlibKey:
    return SSlibKey.from_crypto(bundle.read_public_key((folder / bundle.PUBLIC_KEY).read_bytes()))


def test_the_statement_verifies_by_securesystemslib_alone_and_names_every_file(folder):
    found = envelope(folder)
    assert len(found.verify([key_of(folder)], 1)) == 1 and found.payload_type == "application/vnd.in-toto+json"
    statement = json.loads(found.payload)
    named = {subject["name"]: subject["digest"]["sha256"] for subject in statement["subject"]}
    files = {path.name: bundle.facts_of(path.read_bytes()).sha256 for path in folder.iterdir()}
    assert named == {name: digest for name, digest in files.items() if name not in (bundle.SIGNATURE, STATEMENT)}
    assert statement["_type"] == "https://in-toto.io/Statement/v1"


def test_a_flipped_byte_of_the_statement_is_found_by_securesystemslib_and_by_verify(worded, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(folder_of(worded), copy)
    found = envelope(copy)
    found.payload = found.payload.replace(b"poll-2026", b"poll-2027", 1)
    with pytest.raises(VerificationError):
        found.verify([key_of(copy)], 1)
    (copy / STATEMENT).write_text(json.dumps(found.to_dict(), separators=(",", ":"), sort_keys=True) + "\n")
    assert [problem.file for problem in verify_bundle(copy, worded.home.keys / "signing-key.pub")] == [STATEMENT]


def test_a_statement_that_is_missing_is_found(worded, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(folder_of(worded), copy)
    (copy / STATEMENT).unlink()
    problems = verify_bundle(copy, worded.home.keys / "signing-key.pub")
    assert [str(problem) for problem in problems] == [f"{STATEMENT}: is missing"]


def test_a_statement_written_in_another_way_is_found(worded, tmp_path):
    """There is one text for it, so that nothing can hide in another."""
    copy = tmp_path / "copy"
    shutil.copytree(folder_of(worded), copy)
    document = json.loads((copy / STATEMENT).read_bytes()) | {"note": "read me"}
    (copy / STATEMENT).write_text(json.dumps(document))
    assert [problem.file for problem in verify_bundle(copy, worded.home.keys / "signing-key.pub")] == [STATEMENT]


def test_a_bundle_of_an_earlier_version_has_none_of_them_and_verifies(worded, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(folder_of(worded), copy)
    for name in (*describing_files(), STATEMENT):
        (copy / name).unlink()

    def without(manifest: dict[str, Any]) -> None:
        for name in describing_files():
            del manifest["files"][name]

    sign_again(copy, worded.home, without)
    (copy / STATEMENT).unlink()
    assert verify_bundle(copy, worded.home.keys / "signing-key.pub") == []


def test_two_publications_of_the_same_draws_describe_themselves_in_the_same_bytes(worded, tmp_path):
    """On the same day, by the same program."""
    shutil.copytree(worded.home.path, tmp_path / "home")
    again = replace(worded, home=type(worded.home)(tmp_path / "home"))
    from tasks.publishing.publication import contents, public_tables

    tables = public_tables(again.home, again.release, again.plan, again.references)
    files = contents(again.home, again.release, again.plan, tables, again.proof, "steps-seeds/1", tmp_path)
    first = {path.name: path.read_bytes() for path in folder_of(worded).iterdir()}
    assert {name: each.read_bytes() if isinstance(each, Path) else each for name, each in files.items()} == first


@pytest.mark.whole
def test_a_new_describing_file_is_one_module(monkeypatch, tmp_path):
    added(monkeypatch, "tasks.publishing.descriptions", "describing_files")
    made = make(tmp_path / "home", a_release(POLL, GIVEN, formats=("parquet",)), some_counts(POLL, 301))
    folder = publish(*made.arguments, seeds="steps-seeds/1").folder
    assert (folder / "names.txt").read_text().split() == list(POLL.names)
    assert "the attributes&#39; names" in (folder / bundle.PAGE).read_text(encoding="utf-8")
    found = verify_again(folder, made.home.keys / "signing-key.pub")
    assert found.problems == () and found.recomputed is not None and found.recomputed.same["names.txt"]
