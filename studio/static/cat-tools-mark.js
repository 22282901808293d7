(plugin) => tmAddress({plugin})
