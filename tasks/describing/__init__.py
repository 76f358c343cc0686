"""What is public about a table, from a codebook or a schema, as a first dataset.yaml and release.yaml.

One reader per format (`formats/`) gives one neutral description; one writer makes YAML of it. Values of records are never
looked at: what a schema does not say is left as a gap that a person fills in.
"""
