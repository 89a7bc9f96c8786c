"""Quantities are read, printed, counted and added as Kubernetes does."""

import pytest

from decklog.objects.quantity import (
    INT64_MAX,
    Format,
    InvalidQuantity,
    amount,
    counted,
    nano,
    parse,
)


@pytest.mark.parametrize(
    ("text", "value", "milli_value"),
    [
        ("0.5", 1, 500),
        ("100m", 1, 100),
        ("1e3", 1000, 1_000_000),
        ("1E3", 1000, 1_000_000),
        ("12e6", 12_000_000, 12_000_000_000),
        ("1e-3", 1, 1),
        ("1E", 10**18, INT64_MAX),
        ("1.5Gi", 1_610_612_736, 1_610_612_736_000),
        ("0.5Gi", 536_870_912, 536_870_912_000),
        ("2.5Mi", 2_621_440, 2_621_440_000),
        ("1Ki", 1024, 1_024_000),
        ("1k", 1000, 1_000_000),
        ("644245094400m", 644_245_095, 644_245_094_400),
        ("100n", 1, 1),
        ("500u", 1, 1),
        ("5.", 5, 5000),
        (".5", 1, 500),
        ("+5", 5, 5000),
        ("-0.5", -1, -500),
        ("1Pi", 2**50, 1000 * 2**50),
        ("8Ei", INT64_MAX, INT64_MAX),
        ("16Ei", INT64_MAX, INT64_MAX),
        ("-16Ei", -INT64_MAX, -INT64_MAX),
        ("1e30", INT64_MAX, INT64_MAX),
    ],
)
def test_values_are_rounded_away_from_zero_and_held_at_int64(
    text: str, value: int, milli_value: int
) -> None:
    quantity = parse(text)
    assert (quantity.value(), quantity.milli_value()) == (value, milli_value)
    assert (amount("memory", text), amount("cpu", text)) == (value, milli_value)


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("m", 0, id="a suffix alone"),
        pytest.param(".", 0, id="a point alone"),
        pytest.param("-", 0, id="a sign alone"),
        pytest.param("Gi", 0, id="a binary suffix alone"),
        pytest.param("1e4294967296", 1, id="an exponent is cut to 32 bits"),
        pytest.param("1e9223372036854775807", 1, id="and may come out as -1"),
        pytest.param("0.0000000001", 1, id="what is finer than 1n becomes 1n"),
    ],
)
def test_oddities_are_kept(text: str, want: int) -> None:
    assert parse(text).value() == want


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1K",
        "1KB",
        "1 Gi",
        "1gi",
        "0x10",
        "1_000",
        "1.2.3",
        "1e",
        "1mi",
        "--1",
        "Ei",
        "e-10",
        "\uff11",
    ],
)
def test_what_is_no_quantity_is_refused(text: str) -> None:
    with pytest.raises(InvalidQuantity) as error:
        parse(text)
    assert str(error.value) == f"invalid quantity {text!r}"


@pytest.mark.parametrize(
    "text",
    [
        "1e2147483647",
        "-1e2147483647",
        "1e-2147483648",
        "9" * 900 + "e2147483647",
        "." + "9" * 900 + "e-2147483648",
    ],
)
def test_work_is_bounded_whatever_the_exponent(text: str) -> None:
    """A number of two thousand million digits is never written out."""
    quantity = parse(text)
    one = parse("1Ki")
    assert abs(quantity.value()) in (1, INT64_MAX)
    assert len(quantity.text) < 1_000
    assert len((quantity + one).text) < 4_000
    assert (quantity + one).value() == (one + quantity).value()
    assert quantity.compare(one) in (-1, 1)
    assert abs(counted("memory", nano(text))) in (1, INT64_MAX)


def test_a_text_without_end_is_refused() -> None:
    with pytest.raises(InvalidQuantity, match=r"9…'$"):
        parse("9" * 5_000)


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("1500m", "1500m"),
        ("1000m", "1"),
        ("1024Mi", "1Gi"),
        ("1.5Gi", "1536Mi"),
        ("0.5", "500m"),
        ("1.5k", "1500"),
        ("12.345T", "12.345T"),
        ("1e1", "10"),
        ("1000e3", "1e6"),
        ("0.1Ki", "102400m"),
        ("512", "512"),
        ("0Gi", "0"),
        ("+1.005k", "+1.005k"),
    ],
)
def test_the_text_is_what_kubernetes_prints(text: str, want: str) -> None:
    assert parse(text).text == want


@pytest.mark.parametrize(
    ("one", "other", "sum_text", "difference_text"),
    [
        ("1", "500m", "1500m", "500m"),
        ("1Gi", "1G", "2073741824", "73741824"),
        ("1Gi", "1Mi", "1025Mi", "1023Mi"),
        ("0", "1Gi", "1Gi", "-1Gi"),
        ("1e3", "1", "1001", "999"),
    ],
)
def test_sums_are_printed_like_the_left_one(
    one: str, other: str, sum_text: str, difference_text: str
) -> None:
    assert (parse(one) + parse(other)).text == sum_text
    assert (parse(one) - parse(other)).text == difference_text


def test_equality_and_order_are_of_amounts() -> None:
    assert parse("1Gi") == parse("1073741824") == parse("1073741824000m")
    assert len({parse("1"), parse("1000m"), parse("1e0")}) == 1
    assert parse("1G") < parse("1Gi")
    assert parse("1Gi").format is Format.BINARY_SI
    assert (parse("1") == 1) is False


@pytest.mark.parametrize("resource", ["cpu", "memory"])
def test_counting_sums_rounds_once(resource: str) -> None:
    """Three times a third of a unit is one unit, not three."""
    text = "0.4m" if resource == "cpu" else "400m"
    assert amount(resource, text) == 1
    assert counted(resource, 5 * nano(text)) == 2
