"""`decklog audit`: what was decided."""

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from decklog.cli import exit_codes
from decklog.cli.options import ConfigOption, DataOption, Output, OutputOption, WideOutput

if TYPE_CHECKING:
    from decklog.history.audit import Asked, Page
    from decklog.history.source import Source

app = typer.Typer(
    name="audit",
    help="Look at what was decided.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
LIMIT_ON_TERMINAL = 50
"""Rows that people see without asking for more; programs get all."""


@app.command("list")
def list_(
    namespace: Annotated[
        str | None, typer.Option("--namespace", "-n", help="Only pods of this namespace.")
    ] = None,
    all_namespaces: Annotated[
        bool, typer.Option("--all-namespaces", "-A", help="Pods of all namespaces; the default.")
    ] = False,
    pod: Annotated[
        str | None, typer.Option("--pod", help="Only this pod: NAME, NAMESPACE/NAME or a uid.")
    ] = None,
    node: Annotated[str | None, typer.Option("--node", help="Only what chose this node.")] = None,
    kind: Annotated[
        str | None, typer.Option("--kind", help="Only this kind: PodAssumed, PodUnschedulable, …")
    ] = None,
    reason: Annotated[
        str | None, typer.Option("--reason", help="Only this reason: Unschedulable, …")
    ] = None,
    since: Annotated[
        str | None, typer.Option("--since", metavar="DURATION", help="As --from -DURATION.")
    ] = None,
    after: Annotated[
        str | None, typer.Option("--from", metavar="POS", help="Only what came after it.")
    ] = None,
    until: Annotated[
        str | None, typer.Option("--to", metavar="POS", help="Only what came up to it.")
    ] = None,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, help="How many. On a terminal: 50, else all.")
    ] = None,
    data: DataOption = None,
    config: ConfigOption = None,
    output: Annotated[
        WideOutput, typer.Option("--output", "-o", help="How the answer is printed.")
    ] = WideOutput.TABLE,
) -> int:
    """List decisions, newest first.

    \b
    Examples:
      decklog audit list --namespace shop --since 1h --output wide
      decklog audit list --pod shop/cart-7d9f
      decklog audit list --kind PodUnschedulable --limit 10 --output json
    """
    from decklog.bootstrap.reading import open_source
    from decklog.history.audit import list_decisions
    from decklog.history.positions import Latest, resolve

    _refuse_both(all_namespaces and namespace, "--namespace", "-n names one namespace, -A all")
    _refuse_both(since is not None and after is not None, "--since", "--since is short for --from")
    if limit is None and sys.stdout.isatty():
        limit = LIMIT_ON_TERMINAL
    where = {"namespace": namespace, "node": node, "kind": kind, "reason": reason}
    with open_source(data, config) as source:
        bounds = (f"-{since}" if since else after, until)
        page = list_decisions(source, _asked(source, where, pod, bounds, limit))
        newest = resolve(Latest(), source)
        _print_page(source, page, output, show_namespace=not namespace, as_of=newest)
    if page.more:
        typer.echo(f"decklog: the newest {len(page.items)}; there are more: --limit", err=True)
    return exit_codes.OK


def _refuse_both(given: object, option: str, why: str) -> None:
    if given:
        msg = f"{why}: say one of them"
        raise typer.BadParameter(msg, param_hint=option)


@app.command()
def show(
    decision: Annotated[int, typer.Argument(metavar="SEQ", min=1, help="The decision's number.")],
    data: DataOption = None,
    config: ConfigOption = None,
    output: OutputOption = Output.TABLE,
) -> int:
    """Show a decision with all that belongs to it: tick, chain, effects, payload.

    Exits 1 if the chains do not hold around it.

    \b
    Examples:
      decklog audit show 51210
      decklog audit show 51210 --output json
    """
    from decklog.bootstrap.reading import open_source
    from decklog.cli.audit_text import shown_text
    from decklog.cli.render import print_object
    from decklog.history.audit import show_decision, shown_facts

    with open_source(data, config) as source:
        found = show_decision(source, decision)
    if output is Output.JSON:
        print_object("Decision", shown_facts(found))
    else:
        typer.echo(shown_text(found))
    return exit_codes.NO if found.problems else exit_codes.OK


def _asked(
    source: "Source",
    where: dict[str, Any],
    pod: str | None,
    bounds: tuple[str | None, str | None],
    limit: int | None,
) -> "Asked":
    from decklog.cli.position import parse_position
    from decklog.history.audit import LIMIT_MAX, Asked
    from decklog.history.positions import resolve
    from decklog.ports.ledger import DecisionFilter

    if pod is not None:
        where = {**where, **_pod_filter(pod)}
    now_ms = source.clock.now_ms()
    after, until = (
        None if text is None else resolve(parse_position(text, now_ms=now_ms), source)
        for text in bounds
    )
    return Asked(where=DecisionFilter(**where), after=after, until=until, limit=limit or LIMIT_MAX)


def _pod_filter(pod: str) -> dict[str, str]:
    """Take a pod by NAMESPACE/NAME, by uid, or by its name in any namespace."""
    namespace, slash, name = pod.partition("/")
    if slash:
        return {"namespace": namespace, "pod": name}
    is_uid = len(pod) == 36 and pod.count("-") == 4
    return {"pod_uid": pod} if is_uid else {"pod": pod}


def _print_page(
    source: "Source", page: "Page", output: WideOutput, *, show_namespace: bool, as_of: Any
) -> None:
    from decklog.cli.audit_text import headers, line
    from decklog.cli.render import print_list, print_table
    from decklog.history.audit import listed_facts

    if output is WideOutput.JSON:
        metadata = {
            "asOf": as_of.as_of,
            "position": str(as_of.position),
            "continue": f"decision/{page.items[-1].row.seq - 1}" if page.more else None,
        }
        print_list("DecisionList", [listed_facts(item) for item in page.items], metadata)
        return
    is_wide = output is WideOutput.WIDE
    now_ms = source.clock.now_ms()
    rows = [line(item, now_ms, is_wide=is_wide) for item in page.items]
    names = headers(is_wide=is_wide)
    if not show_namespace:
        names, rows = names[1:], [row[1:] for row in rows]
    if rows:
        print_table(names, rows)
    else:
        typer.echo("decklog: no decision is like that", err=True)
