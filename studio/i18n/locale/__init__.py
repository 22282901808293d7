"""Translations of the studio's interface (`zh.po`) and the command that keeps them in step with the code."""
