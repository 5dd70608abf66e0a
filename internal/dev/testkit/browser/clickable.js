// Returns where an element can be clicked, or throws if it cannot. The element must be at
// the same place in two animation frames. If it moves after that, the guard blocks the
// click, which would hit another element.
(() => {
	const box = element.getClientRects()[0];
	if (!box || !box.width || !box.height) throw new Error("the element is not visible");
	if (element.disabled || element.getAttribute("aria-disabled") === "true") throw new Error("the element is disabled");
	// A busy machine may draw no frame in which a moving element moves.
	for (let moving = element; moving; moving = moving.parentElement)
		if (moving.getAnimations().some(({playState, effect}) => playState === "running" && effect?.getComputedTiming().endTime !== Infinity))
			throw new Error("the element is moving");
	const before = element.seen, now = {place: JSON.stringify(box), frame: document.timeline.currentTime};
	element.seen = now;
	if (before?.place !== now.place || before.frame === now.frame) throw new Error("the element is moving");
	const at = {x: box.x + box.width / 2, y: box.y + box.height / 2};
	const isPart = (hit) => element.contains(hit) || hit?.closest?.("label")?.control === element;
	const hit = document.elementFromPoint(at.x, at.y);
	if (!isPart(hit)) {
		element.scrollIntoView({block: "center", inline: "center", behavior: "instant"});
		throw new Error("the element is behind " + (hit ? hit.outerHTML.slice(0, 200) : "the edge of the window"));
	}
	delete element.seen;
	const listeners = new AbortController(), guard = window.clickGuard = {end: () => listeners.abort()};
	for (const type of ["pointerdown", "mousedown", "pointerup", "mouseup", "click"])
		window.addEventListener(type, (event) => {
			guard.missed ??= !isPart(event.target);
			if (!guard.missed) return;
			event.preventDefault();
			event.stopImmediatePropagation();
		}, {capture: true, signal: listeners.signal});
	return at;
})()
