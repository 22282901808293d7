(...held) => [...held.slice(0, -1), window.tmSettings?.() || held.at(-1)]
