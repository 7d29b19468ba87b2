"""Remedies for a failure, as text and SARIF describe them: releases without it, and workarounds."""

from __future__ import annotations

from repros.advise.audit.assessment import Assessment
from repros.model import FailureKind, Repro, Variant
from repros.text.wording import own_requirements


def fixed_in(assessment: Assessment) -> str:
    """Return the newer releases without the failure, or `no release yet` for an unfixed bug.

    Empty for other kinds of failures, because no fix is to be expected.
    """
    unfixed = "no release yet" if assessment.repro.kind is FailureKind.BUG else ""
    return " or ".join(assessment.fixed) or unfixed


def describe_workaround(repro: Repro, variant: Variant) -> str:
    """Return a workaround on one line: description, requirements, name of the variant, source.

    The name follows the description, because a leading `fixed` could be read as a fixed release.
    """
    own = own_requirements(repro, variant)
    needs = f"needs {', '.join(own)}; " if own else ""
    source = f" {variant.source}" if variant.source else ""
    return f"{variant.about} ({needs}variant {variant.name}){source}"
