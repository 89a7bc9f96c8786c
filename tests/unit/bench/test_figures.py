from bench.figures import REQUIREMENTS, figures


def test_a_figure_says_its_limit_and_the_command_that_makes_it() -> None:
    found = {"loop-embedded": {"wall_seconds": 12.0, "pods": 10_000, "rss_max_bytes": 4e8}}
    wall, memory, each = figures(found, "python -m bench")
    assert wall == {
        "name": "loop-embedded: wall_seconds",
        "value": 12.0,
        "unit": "s",
        "requirement": "<= 10",
        "met": False,
        "command": "python -m bench loop-embedded",
    }
    assert (memory["value"], memory["met"]) == (400.0, True)
    assert (each["name"], each["value"]) == ("loop-embedded: wall_seconds / pods", 1.2)
    assert each["met"]


def test_what_was_not_measured_or_did_not_occur_has_no_figure() -> None:
    assert figures({"payloads": {"PodAssumed": {"p50": 650}}}, "") == [
        {
            "name": "payloads: PodAssumed p50",
            "value": 650.0,
            "unit": "B",
            "requirement": "<= 700",
            "met": True,
            "command": " payloads",
        }
    ]


def test_every_requirement_has_a_name_of_its_own() -> None:
    names = [each.name for each in REQUIREMENTS]
    assert len(set(names)) == len(names)
