"""What the official conformance suite is asked, and what it said."""
