"""The catalogue: a static site over everything that is published. It shows what bundles and the public chain say, no more."""
