"""What decklog costs, measured: each bench prints JSON."""
