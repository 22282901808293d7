(source, target) => { if (source) tmAddress({source, target}); }
