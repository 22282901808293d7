"""Translations of the studio's interface (`zh.po`); `studio.i18n.extract` keeps them in step with the code."""
