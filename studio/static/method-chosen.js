(method, ...others) => [window.tmMethod?.() || method, ...others]
