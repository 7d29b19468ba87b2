# /// script
# dependencies = ["torch\u0000"]
# [tool.repro]
# ///
