"""The demo: CellJoin's band join of two live streams on embedded Spark, checked against the oracle."""
