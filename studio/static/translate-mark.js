(project, plugin, strength, text) => tmAddress({
  ...(project && {project}),
  plugin: String(plugin || 0),
  strength: plugin && Number(strength) !== 1 ? String(strength) : '',
  text: text && text.length <= 1200 ? text : '',
})
