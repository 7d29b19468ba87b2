"""A report of an audit, with an assessment of every status and kind, for the tests of its formats."""

from __future__ import annotations

import datetime as dt
from typing import Any

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from repros.advise.audit.assess import assess
from repros.advise.audit.ignore import Ignore, index_ignores
from repros.advise.audit.report import DEFAULT_POLICY, AuditReport, FailOn, Policy, build_report
from repros.advise.audit.subject import Constraint, Location, Subject
from repros.model import ExpectedOutcome, FailureKind
from repros.model.affected import packages_of
from repros.model.catalogue import Catalogue
from tests import factories
from tests.advise.audit.test_assess import measurement, subject
from tests.package_catalogue import load

TODAY = dt.date(2026, 11, 21)
DOC = "A toy.\n\nSymptom: it fails.\n\nCause: a cause."
FIXED = factories.variant("fixed", ExpectedOutcome.PASSES, about="a fresh Trainer", source="https://example.org/2")


def repro(id_: str, affected: str, **given: Any) -> Any:
    ranges = factories.conditions(*filter(None, [affected]))
    packages = packages_of(ranges) or ("torch",)
    return factories.repro(
        id_, affected=ranges, packages=packages, doc=DOC, variants=(factories.variant(affected=ranges), FIXED), **given
    )


MANY = "lightning>=2.0,<2.0.8 or lightning>=2.1,<2.3 or lightning==2.4.*"
CATALOGUE = Catalogue(
    (
        repro("RPR-0001", "lightning>=2.1,<2.4", title="The LR finder leaves results behind"),
        repro("RPR-0002", "lightning<2.6", silent=True),
        repro("RPR-0003", "accelerate<1"),
        repro("RPR-0004", "bitsandbytes<1"),
        repro("RPR-0005", "lightning<2"),
        repro("RPR-0006", ""),
        repro("RPR-0007", "torch<2"),
        repro("RPR-0008", ""),
        repro("RPR-0009", "", kind=FailureKind.MISUSE),
        repro("RPR-0010", MANY, kind=FailureKind.LIMITATION),
    )
)
SUBJECT = Subject(
    "requirements.txt",
    {
        "lightning": (Constraint("2.2", Location("requirements.txt", 1), Version("2.2")),),
        "torch": (Constraint("2.7", Location("requirements.txt", 2), Version("2.7")),),
        "accelerate": (Constraint(">=0.20", Location("requirements.txt", 3), releases=SpecifierSet(">=0.20")),),
    },
    complete=False,
    unparsed=("requirements.txt:9: 'x y' (not a requirement)",),
)
IGNORES = (
    Ignore("RPR-0006", "we know", dt.date(2027, 1, 31)),
    Ignore("RPR-0008", "we knew", dt.date(2026, 1, 31)),
    Ignore("RPR-0005", "not ours", dt.date(2027, 1, 31)),
)
EVERYTHING = Policy(FailOn.ALL, strict=True)
SEEN = measurement("2023-12", lightning="2.2", torch="2.7")


def make_report(policy: Policy = DEFAULT_POLICY) -> AuditReport:
    """Return the report of the toys."""
    found = assess(CATALOGUE, SUBJECT, {SEEN.unit: SEEN})
    return build_report(SUBJECT, found, index_ignores(IGNORES, CATALOGUE), TODAY, policy)


def report_on_the_catalogue(policy: Policy = DEFAULT_POLICY) -> AuditReport:
    """Return a report on old pins of every package, which have most of the catalogue's failures."""
    here = subject(lightning="2.4.0", torch="2.4.1", accelerate="1.0", bitsandbytes="0.48", torchmetrics="1.5")
    return build_report(here, assess(load(), here, {}), {}, TODAY, policy)
