// Other people's programs leave some things nameless or nested where they
// cannot be: mends are made as soon as something appears.
export function mend(place, mends) {
  const go = () => {
    for (const [selector, change] of Object.entries(mends)) {
      place.querySelectorAll(selector).forEach(change);
    }
  };
  new MutationObserver(go).observe(place, { childList: true, subtree: true, attributes: true, attributeFilter: ["aria-selected", "role"] });
  go();
}

// set changes an attribute that is not so yet: else it would go on for ever.
export function set(element, name, value) {
  if (value === null ? element.hasAttribute(name) : element.getAttribute(name) !== value) {
    value === null ? element.removeAttribute(name) : element.setAttribute(name, value);
  }
}
