"""The project board: projects, todos, sprints and tags, their JSON API, pages and tools."""
