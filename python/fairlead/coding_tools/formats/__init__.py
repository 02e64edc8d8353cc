"""Editing configuration files as text: only our members change; comments, order and spacing of the rest stay.

`change` says what is to change, `json_text`, `toml_text`, `yaml_text` and `env_text` edit one format each, and
`document` chooses among them and proves that nothing else has changed.
"""
