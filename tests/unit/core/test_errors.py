from decklog.core.errors import DecklogError, Deposed, EntryTooLarge, PositionLost


def test_an_error_says_in_one_line_what_could_not_be_done_and_what_was_found() -> None:
    found: list[tuple[DecklogError, str]] = [
        (
            EntryTooLarge("Pod/a/b", size_bytes=9, size_bytes_max=5),
            "cannot append entry 'Pod/a/b': 9 bytes, and the log takes 5",
        ),
        (
            PositionLost(after=4, first=7, last=9),
            "cannot read after position 4: the log holds positions 7 to 9",
        ),
        (
            Deposed("eu1", generation=7, found=8),
            "cannot commit a tick of stream 'eu1' in generation 7: the ledger is at 8",
        ),
    ]
    assert [str(error) for error, _ in found] == [want for _, want in found]
