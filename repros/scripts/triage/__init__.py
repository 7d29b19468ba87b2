"""Answer for anything that a person has of a failure: `repros triage`, and `repros WHATEVER`.

`kind` recognises inputs by their content. `log_answer`, `hang_answer`, `failure_answer`, `script_answer` and
`packages_answer` build an `Answer` for each kind, from cheap to costly parts. `text` and `json_format` present it.
"""
