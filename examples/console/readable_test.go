package main

// readable is a function of the page that returns what some people cannot read or name: texts with less contrast than
// WCAG 2 asks for (AA), and fields, buttons, links, heads of columns and what scrolls without a name.
const readable = `window.unreadable = () => {
	const parts = (color) => {
		const [r, g, b, alpha = 1] = color.match(/[\d.]+/g).map(Number);
		return color.startsWith("color(srgb") ? [r * 255, g * 255, b * 255, alpha] : [r, g, b, alpha];
	};
	const over = (top, bottom) => [0, 1, 2].map((i) => top[i] * top[3] + bottom[i] * (1 - top[3]));
	const light = (color) => {
		const [r, g, b] = color.map((v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
		return 0.2126 * r + 0.7152 * g + 0.0722 * b;
	};
	const behind = (e) => e ? over(parts(getComputedStyle(e).backgroundColor), behind(e.parentElement)) : [255, 255, 255];
	const found = [];
	for (const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT); walk.nextNode();) {
		const text = walk.currentNode.textContent.trim(), e = walk.currentNode.parentElement;
		if (!text || !e.getClientRects().length || e.closest("script, style, svg, :disabled")) continue;
		const style = getComputedStyle(e), ground = behind(e);
		const both = [light(over(parts(style.color), ground)), light(ground)].sort((a, b) => b - a);
		const ratio = (both[0] + 0.05) / (both[1] + 0.05);
		if (ratio < (parseFloat(style.fontSize) >= 24 ? 3 : 4.5)) found.push("contrast " + ratio.toFixed(2) + ": " + text.slice(0, 40));
	}
	for (const e of document.querySelectorAll("input, select, textarea")) {
		if (!e.labels.length && !e.ariaLabel) found.push("no label: " + e.outerHTML.slice(0, 80));
	}
	for (const e of document.querySelectorAll("[tabindex='0']")) {
		if (!e.ariaLabel || !e.role) found.push("no role and name: " + e.outerHTML.slice(0, 80));
	}
	for (const e of document.querySelectorAll("button, a[href], th")) {
		if (!e.textContent.trim() && !e.ariaLabel) found.push("no name: " + e.outerHTML.slice(0, 80));
	}
	return found.join("; ");
}`
