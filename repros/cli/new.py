"""`repros new`: write the script of a new repro, from a template or a filled issue form."""

from __future__ import annotations

import shlex
import sys
from dataclasses import replace
from pathlib import Path

import click

from repros.authoring.families import FAMILIES, refuse_unknown
from repros.authoring.new.fill import fill_template
from repros.authoring.new.form import FilledForm, parse_form
from repros.authoring.new.measured import form_of
from repros.authoring.new.skeletons import SKELETONS
from repros.authoring.new.template import script_path, write_script
from repros.cli.shared.example import example
from repros.cli.shared.inputs import CHECKOUT
from repros.cli.shared.options import stacks_option
from repros.cli.shared.output import console, show_text
from repros.cli.shared.script_options import ready_stacks, running_options, try_on
from repros.cli.shared.streams import echo
from repros.cli.shared.weak_sandbox import accept_sandbox
from repros.cli.shared.where import choose_where
from repros.model.errors import ReprosError
from repros.model.settings import (
    CATALOGUE,
    DEFAULT_PREFIX,
    OWN_PREFIX,
    CatalogueLocations,
    find_catalogues,
    find_table,
    is_own_file,
    read_settings,
)
from repros.scripts.try_.request import ScriptRequest, read_task
from repros.text.wording import relative_to_cwd


@click.command(
    epilog=example(
        "repros new lr_finder_leaves_results_on_cpu --family lightning",
        "repros new --from-issue issue.md",
        "repros new momentum_is_lost --family optimizers --from-script train.reduced.py --thread ADDRESS",
    ),
)
@click.argument("slug", required=False)
@click.option(
    "--family",
    metavar="NAME",
    help=f"Family, the script's folder in the catalogue: {', '.join(FAMILIES)}. In a private catalogue any name; "
    "default: the catalogue's own folder.",
)
@click.option(
    "--template",
    type=click.Choice([*SKELETONS]),
    metavar="NAME",
    help=f"Template code: {', '.join(SKELETONS)}. Default: the family's. resume is a fit that continues from a "
    "checkpoint.",
)
@click.option(
    "--from-issue",
    "report",
    type=click.Path(path_type=Path, allow_dash=True),
    metavar="FILE",
    help="Fill the template from the text of a new-failure issue; '-' is stdin.",
)
@click.option(
    "--from-script",
    "script",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Run this failing script, such as one of `repros reduce`, and fill the template from it and its outcome.",
)
@click.option("--thread", metavar="URL", help="With --from-script: address of the report.")
@stacks_option(
    "With --from-script: stack to run it on; repeatable. The first that fails becomes `home`. Default: the ready "
    "stacks, current first."
)
@running_options
@click.option(
    "--catalogue",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="PATH",
    help="Catalogue of the new script. Default: the first folder in REPROS_CATALOGUE or pyproject.toml, else "
    f"{CHECKOUT}.",
)
def new(
    slug: str | None,
    family: str | None,
    template: str | None,
    report: Path | None,
    script: Path | None,
    thread: str | None,
    stacks: tuple[str, ...],
    request: ScriptRequest,
    catalogue: Path | None,
) -> None:
    """Write a new repro script from a template whose two variants run.

    SLUG names the script after the failure, in lower case, such as submodule_call_skips_gradient_sync. With
    --from-issue, slug and family default to those of the issue. Values that the header rejects are reported with the
    reason, and the template's value is kept. The script gets a provisional id until it is merged; in a private
    catalogue, the next free id.

    With --from-script, FILE runs on the stacks like `repros try`. Its code becomes the failing variant; signature,
    `home` and affected range come from the outcomes. Symptom, cause and fix are left to the author, and `repros check`
    lists them.
    """
    _refuse_other_options(report, script, thread, stacks)
    form = parse_form(_read_issue(report)) if report is not None else None
    if form is not None:
        slug, family = slug or form.slug, family or form.family
    if slug is None:
        raise click.UsageError("Missing argument 'SLUG'.")
    _make_named_folders()
    settings = read_settings()
    folders = [place for place in settings.catalogue if place.is_dir()]
    catalogue = catalogue or (relative_to_cwd(folders[0]) if folders else CHECKOUT)
    own = catalogue == CHECKOUT or catalogue.resolve().is_relative_to(CATALOGUE)
    if own and family is None:
        raise click.UsageError("Missing option '--family'.")
    family = family or ""
    if own and catalogue.is_dir():
        refuse_unknown(family)
    prefix = OWN_PREFIX if own else read_settings(catalogue).prefix
    places = find_catalogues([catalogue])
    if script is not None:
        script_path(catalogue, family, slug)  # raises before minutes are spent
        form = _measure(replace(request, words=(str(script),), watch=False), slug, thread, stacks)
    path = write_script(
        catalogue, family, slug, [*folders, CATALOGUE], lambda text: _fill(text, form, places), prefix, template
    )
    command = shlex.join(["repros", "check", slug, *places.origin_of(path).words])
    echo(f"{path}\nEdit it, and check it:\n  {command}")
    if prefix == DEFAULT_PREFIX:
        hint = 'to give your ids a prefix of their own, set prefix = "ACME" in [tool.repros] of pyproject.toml'
        show_text(console(stderr=True), hint, "dim")


def _make_named_folders() -> None:
    """Make the folders of `catalogue` in the project's settings: before the first script they do not exist."""
    file, table = find_table(Path.cwd())
    names = table.get("catalogue", [])
    if file is None or not is_own_file(file) or not isinstance(names, list):
        return
    for name in names:
        if isinstance(name, str) and not name.endswith(".py"):
            (file.parent / Path(name).expanduser()).mkdir(parents=True, exist_ok=True)


def _refuse_other_options(issue: Path | None, script: Path | None, thread: str | None, stacks: tuple[str, ...]) -> None:
    if issue is not None and script is not None:
        raise click.UsageError("--from-issue and --from-script exclude each other: both provide the code.")
    if script is None and (thread or stacks):
        raise click.UsageError("--thread and --stack need --from-script FILE.")


def _measure(request: ScriptRequest, slug: str, thread: str | None, stacks: tuple[str, ...]) -> FilledForm:
    """Run a script on the stacks and return the form filled from the outcomes."""
    places = find_catalogues()
    task = read_task(request)
    accept_sandbox(task.sandbox, is_accepted=request.weak_sandbox)
    where = choose_where(stacks or ready_stacks(places), None, places)
    runs = try_on(task, lambda _: where)
    title = slug.replace("_", " ").capitalize()
    return form_of(task.python_script.source, task.script.name, task.needs, task.options, runs, thread, title)


def _fill(template: str, form: FilledForm | None, places: CatalogueLocations) -> str:
    """Return the template filled from a form if there is one; report rejected values on stderr."""
    if form is None:
        return template
    out = console(stderr=True)
    return fill_template(template, form, lambda problem: show_text(out, f"rejected: {problem}", "yellow"), places)


def _read_issue(issue: Path) -> str:
    try:
        return sys.stdin.read() if str(issue) == "-" else issue.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        problem = getattr(error, "strerror", None) or "not UTF-8 text"
        raise ReprosError(f"{issue} cannot be read ({problem}); expected the Markdown of an issue.") from error
