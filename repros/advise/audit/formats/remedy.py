"""What to do about a failure, in the words that the text and SARIF share: the releases without it, the workarounds."""

from __future__ import annotations

from repros.advise.audit.assessment import Assessment
from repros.model import FailureKind, Repro, Variant
from repros.text.wording import own_requirements


def fixed_in(assessment: Assessment) -> str:
    """Return the releases above the subject's without the failure, or that no release has the fix of a bug yet.

    Nothing where the failure is no bug: a fix is not to be expected.
    """
    unfixed = "no release yet" if assessment.repro.kind is FailureKind.BUG else ""
    return " or ".join(assessment.fixed) or unfixed


def describe_workaround(repro: Repro, variant: Variant) -> str:
    """Return a workaround on one line: what it does, its own requirements, the variant that shows it, its source.

    The name comes after the text: one such as `fixed` in front of it reads as if a release were fixed.
    """
    own = own_requirements(repro, variant)
    needs = f"needs {', '.join(own)}; " if own else ""
    source = f" {variant.source}" if variant.source else ""
    return f"{variant.about} ({needs}variant {variant.name}){source}"
