"""How a benchmark prints: a line a figure, `name: value unit, aim ...`; exit status 1 where an aim is missed."""

from __future__ import annotations

missed: list[str] = []


def tell(name: str, value: float, unit: str, aim: str = "", held: bool = True, beside: str = "") -> None:
    """Print a figure, with its aim where it has one and what else is to be known of it; note an aim that is not held.

    unit: may be words, such as "of true nulls rejected".
    """
    rest = [f", aim {aim}" if aim else "", f" ({beside})" if beside else "", "" if held else "  MISSED"]
    print(f"{name}: {_shown(value)} {unit}{''.join(rest)}", flush=True)
    if not held:
        missed.append(name)


def _shown(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def status() -> int:
    """For sys.exit: 1 where an aim was missed."""
    return 1 if missed else 0
