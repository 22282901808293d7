// Of files that are chosen or dropped, Gradio would refuse all where one is too large. Here the others go on, and the names of those
// that are too large go to the page, which says why they are not taken.
const limit = window.gradio_config?.max_file_size || Infinity;
const fitting = (files) => {
  const large = [...files].filter((file) => file.size > limit);
  if (!large.length) return null;
  trigger('refuse', {names: large.map((file) => file.name)});
  const rest = new DataTransfer();
  for (const file of files) if (file.size <= limit) rest.items.add(file);
  return rest;
};
const listen = (name, look) => {
  const listener = (event) => {
    if (element.isConnected) look(event);
    else document.removeEventListener(name, listener, true);  // another page took the place of this one
  };
  document.addEventListener(name, listener, true);
};
listen('change', (event) => {
  if (!event.target.matches?.('input[type=file]')) return;
  const rest = fitting(event.target.files);
  if (!rest) return;
  event.stopImmediatePropagation();
  event.target.files = rest.files;
  if (rest.files.length) event.target.dispatchEvent(new Event('change', {bubbles: true}));
});
listen('drop', (event) => {
  const rest = event.dataTransfer && fitting(event.dataTransfer.files);
  if (!rest) return;
  event.preventDefault();
  event.stopImmediatePropagation();
  event.target.dispatchEvent(new DragEvent('drop', {bubbles: true, cancelable: true, dataTransfer: rest}));
});
