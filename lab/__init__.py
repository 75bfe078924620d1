"""The local half of the harness: what runs beside a load test and is never uploaded."""
