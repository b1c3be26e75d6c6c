// Before the first paint: the theme that the person chose, if they did.
(() => {
  const chosen = localStorage.getItem('outlast-theme');
  if (chosen === 'light' || chosen === 'dark') document.documentElement.dataset.theme = chosen;
})();
